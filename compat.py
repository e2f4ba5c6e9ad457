"""Drop-in helpers for torchvision.io.write_video, diffusers.utils.export_to_video and torchcodec.encoders.VideoEncoder."""

from .encoder.compat import VideoEncoder, export_to_video, write_video

__all__ = ["VideoEncoder", "export_to_video", "write_video"]
