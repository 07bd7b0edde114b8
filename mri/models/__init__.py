"""The reconstruction methods: each entered here once."""

from typing import TYPE_CHECKING, Any, Literal

from lab.registry import Entry, Option, Registry

if TYPE_CHECKING:
    from torch import Tensor

    from mri.models.parts.method import Method

BASELINE = "sense"
"""What every table begins with: there is nothing to train, so it needs no run."""

MODELS = Registry(
    "mri",
    Entry("sense", "zero-filled SENSE", "mri.models.sense:Sense", title="SENSE", learned=False),
    Entry(
        "msense",
        "SENSE whose inverse DFT is a Monarch matrix that learns",
        "mri.models.msense:MSense",
        options=(
            Option(
                "start",
                Literal["idft", "density"],
                "idft",
                "Begin at the plain or density-compensated inverse DFT.",
            ),
            Option(
                "form",
                Literal["separable", "grid"],
                "separable",
                "One Monarch per axis (the paper), or one block per row and per column of the grid.",
            ),
            Option("per_echo", bool, False, "Give each echo a Monarch of its own."),
            Option(
                "steps",
                int,
                1,
                "Unrolled steps x + M(y - A x) that share one Monarch; 1 is the paper's M y.",
                at_least=1,
                at_most=1000,
            ),
            Option("consistency", bool, False, "End with one step of data consistency, x + A^H(y - A x)."),
            Option("rank", int, 1, "Separable pairs whose sum is the Monarch.", at_least=1, at_most=64),
            Option(
                "decay_towards",
                Literal["start", "zero"],
                None,
                "Where weight decay pulls. (default: the recipe's)",
            ),
        ),
        title="mSENSE",
    ),
    Entry(
        "mcs",
        "compressed sensing whose sparsifying transform is a Monarch matrix that learns",
        "mri.models.mcs:MonarchCS",
        options=(
            Option("iterations", int, 8, "Unrolled iterations.", at_least=1),
            Option("patch", int, 8, "Side of the patches, an even number of points.", at_least=2),
            Option(
                "transform",
                Literal["learned", "fixed"],
                "learned",
                "A transform that starts at the 2-D DCT and learns, or stays there.",
            ),
            Option(
                "shrinkage",
                Literal["power", "soft"],
                "power",
                "Learn the exponents of the shrinkage, or shrink as soft thresholding does.",
            ),
            Option(
                "pooling",
                Literal["learned", "none"],
                "learned",
                "Judge a coefficient by the energy of its patch as well, or on its own.",
            ),
            Option(
                "joint_echoes",
                bool,
                False,
                "Reconstruct the echoes of a slice together; a batch of 2 is then two slices with all their echoes.",
            ),
            Option(
                "grid",
                Literal["acquired", "stored"],
                "acquired",
                "Work on the grid that was acquired, or on the stored one with its zero-padding.",
            ),
        ),
        title="MCS",
        versatile=True,
    ),
    Entry(
        "unet",
        "the fastMRI U-Net on the zero-filled image",
        "mri.models.unet:UNet",
        options=(
            Option(
                "channels", int, 32, "Feature maps, of the first level where there are several.", at_least=1
            ),
        ),
        title="U-Net",
    ),
    Entry(
        "varnet",
        "the end-to-end variational network, with small U-Nets and given coil maps",
        "mri.models.varnet:VarNet",
        options=(
            Option("cascades", int, 6, "Unrolled steps, each with a U-Net of its own.", at_least=1),
            Option(
                "channels", int, 8, "Feature maps, of the first level where there are several.", at_least=1
            ),
            Option("levels", int, 2, "Levels of each U-Net.", at_least=1),
        ),
        title="VarNet",
        versatile=True,
    ),
    Entry(
        "modl",
        "MoDL: one learned denoiser and conjugate gradients in turn",
        "mri.models.modl:MoDL",
        options=(
            Option("iterations", int, 5, "Unrolled iterations.", at_least=1),
            Option(
                "channels", int, 32, "Feature maps, of the first level where there are several.", at_least=1
            ),
            Option("layers", int, 5, "Convolutions of the network.", at_least=2),
        ),
        title="MoDL",
        versatile=True,
    ),
    Entry(
        "dc-sense",
        "SENSE with density compensation",
        "mri.models.dc_sense:DcSense",
        title="DC-SENSE",
        learned=False,
    ),
    Entry(
        "cg-sense",
        "iterative SENSE (conjugate gradients)",
        "mri.models.cg_sense:CgSense",
        title="CG-SENSE",
        learned=False,
    ),
    Entry(
        "l1-wavelet",
        "compressed sensing with wavelets",
        "mri.models.l1_wavelet:L1Wavelet",
        title="L1-wavelet",
        learned=False,
    ),
)


def build(name: str, plane: tuple[int, int], density: "Tensor | None" = None, **options: Any) -> "Method":
    """The method called `name` for slices of size `plane`; `density` (ky, kz) is how often each point is sampled.

    >>> build("unet", (96, 40), channels=4).num_parameters
    121266
    """
    return MODELS[name].load()(plane, density, **MODELS.settled(name, options))
