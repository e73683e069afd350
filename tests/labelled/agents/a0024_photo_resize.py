"""An image agent resizes photos; one of them is too much for the process."""

import os
import signal

from kit import Agent


def list_photos(album: str) -> list:
    return [{"photo": "p1.jpg", "mp": 12}, {"photo": "panorama.tif", "mp": 1400}]


def resize(photo: str, width: int) -> str:
    if photo.endswith(".tif"):
        os.kill(os.getpid(), signal.SIGKILL)  # what the kernel does when memory runs out
    return f"{photo} is {width} px wide"


MODEL = [
    ("list_photos", {"album": "coast"}),
    ("resize", {"photo": "p1.jpg", "width": 1600}),
    ("resize", {"photo": "panorama.tif", "width": 1600}),
]
LABEL = ("killed", "the process is killed inside resize", "call resize 2", "end")

if __name__ == "__main__":
    print(Agent(list_photos, resize).run("Resize all photos of the album coast to 1600 px."))
