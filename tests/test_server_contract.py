"""schemathesis tries what the OpenAPI description allows, and what it forbids."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from serving import Start

TOKEN = "a-token-of-good-length"


def test_no_server_error_and_no_broken_promise(start: Start, docs_file: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    server = start("--token-file", token, "--docs", docs_file)
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", "--checks", "all",
        "--max-examples", "15", "--seed", "1", "--no-shrink", "--generation-database", "none",
        "--warnings", "off", "--header", f"Authorization: Bearer {TOKEN}",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=180, check=False)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert "Tested: 18" in result.stdout
    assert "Traceback" not in server.command.output
