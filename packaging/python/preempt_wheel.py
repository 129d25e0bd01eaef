# SPDX-License-Identifier: MIT
"""The build backend that pyproject.toml names. A wheel is a zip archive of preempt.py and three small files."""
import base64
import hashlib
import pathlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_wheel(directory, config_settings=None, metadata_directory=None):
    version = (ROOT / "VERSION").read_text().strip()
    name = f"preempt_tools-{version}"
    files = {
        "preempt.py": (ROOT / "lib/client/preempt.py").read_text(),
        f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: preempt-tools\nVersion: {version}\nLicense: MIT\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: preempt_wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{name}.dist-info/RECORD"
    rows = ""
    for file, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows += f"{file},sha256={digest},{len(text.encode())}\n"
    files[record] = rows + f"{record},,\n"
    with zipfile.ZipFile(f"{directory}/{name}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return f"{name}-py3-none-any.whl"
