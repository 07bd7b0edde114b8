"""Accelerated multi-coil MRI: SENSE, mSENSE and their rivals, trained, evaluated, shown."""
