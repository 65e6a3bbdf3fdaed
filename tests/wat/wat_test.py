#!/usr/bin/env python3
"""Our own scripts, one .wast file a subject, in the official suite's language."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import wast

here = pathlib.Path(__file__).resolve().parent
sys.exit(wast.run_files(here, sorted(here.glob("*.wast")), {}))
