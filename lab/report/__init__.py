"""Results as one HTML page that needs nothing but a browser: tables, pictures with controls, training, manifests."""

from lab.report.page import Page, write
from lab.report.viewer import Curves, Stack, Viewer

__all__ = ["Curves", "Page", "Stack", "Viewer", "write"]
