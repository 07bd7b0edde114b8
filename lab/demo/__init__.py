"""The whole harness at work on a task of seconds: recover a fast transform from examples."""
