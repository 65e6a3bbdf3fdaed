#!/usr/bin/env python3
"""The manual page and the shells' completions have every option and command that --help has."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SHELLS = ["bash", "zsh", "fish"]


def output(*words):
    return subprocess.run([os.environ["GPURUN"], *words], capture_output=True, text=True, timeout=30,
                          check=True).stdout


def help_lines(*words):
    """Names at the start of the indented lines of a help text, before its examples."""
    text = output(*words, "--help").split("\nExamples:")[0]
    return [line.split()[0] for line in text.splitlines() if re.match(r"  \S", line)]


def options_of(*words):
    return [name for line in help_lines(*words) for name in line.split(",") if name.startswith("-")]


def commands():
    return [line for line in help_lines() if re.fullmatch(r"[a-z]+", line)]


def lists_everything():
    everything = set(commands()) | set(options_of())
    for command in commands():
        everything |= set(options_of(command))
    assert len(everything) > 30 and "--device" in everything, everything
    page = output("man").replace("\\-", "-")
    texts = {"man": page, **{shell: output("completions", shell) for shell in SHELLS}}
    for kind, text in texts.items():
        for name in everything:
            wanted = name
            if kind == "fish" and name.startswith("-"):
                wanted = f"-l {name[2:]} " if name.startswith("--") else f"-s {name[1:]} "
            assert wanted in text, f"{kind} lacks {name}"


def complete(*words):
    """What bash offers for the last word."""
    script = output("completions", "bash") + """
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        _gpu_run; printf '%s\\n' "${COMPREPLY[@]}" """
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/data")
        open(f"{folder}/app.wasm", "wb").close()
        done = subprocess.run(["bash", "-c", script, "bash", *words], cwd=folder, capture_output=True,
                              text=True, timeout=30, check=True)
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


def bash_completes():
    expected = {
        ("gpu-run", "--de"): {"--device"},
        ("gpu-run", "--device", ""): {"auto", "cpu", "cuda"},
        ("gpu-run", "--tier", ""): {"auto", "interp", "native"},
        ("gpu-run", "run", "--layout", ""): {"auto", "linear", "interleaved"},
        ("gpu-run", "wast", "--tier", "n"): {"native"},
        ("gpu-run", "compile", "--target", ""): {"all", "cpu", "cuda"},
        ("gpu-run", "compile", "--emit", ""): {"ir", "asm", "ptx"},
        ("gpu-run", "compile", "--cpu", ""): {"native"},
        ("gpu-run", "completions", ""): {"bash", "zsh", "fish"},
        ("gpu-run", "help", "obj"): {"objdump"},
        ("gpu-run", "--program", "a"): {"app.wasm"},
        ("gpu-run", "--dir", ""): {"data"},
        ("gpu-run", "--timeout", ""): set(),
        ("gpu-run", "obj"): {"objdump"},
        ("gpu-run", "a"): {"app.wasm"},
        ("gpu-run", "objdump", "--h"): {"--help", "--headers"},
        ("gpu-run", "objdump", ""): {"app.wasm", "data"},
        ("gpu-run", "--quiet", "obj"): set(),
    }
    for words, offered in expected.items():
        found = complete(*words)
        assert found == offered, f"{' '.join(words)}: {found}, expected {offered}"


def values_are_known():
    """What the help of an option names as its values is completed, in every shell."""
    for command in [[]] + [[name] for name in commands()]:
        for line in output(*command, "--help").split("\nExamples:")[0].splitlines():
            named = re.match(r"  (?:-.,)?(--[a-z-]+) [A-Z]+ .*: (.*)$", re.sub(r" \([^)]*\)", "", line))
            words = named[2].split(", ") if named else []
            if not {"auto", "all", "ir"} & set(words):
                continue
            offered = complete("gpu-run", *command, named[1], "")
            assert offered == set(words) - {"cuda:N"}, f"{command} {named[1]}: {offered}, help has {words}"
            for shell in SHELLS:
                assert any(named[1].lstrip("-") in row and all(word in row for word in offered)
                           for row in output("completions", shell).splitlines()), f"{shell}: {named[1]}"


def shells_read_them():
    for shell in SHELLS:
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=output("completions", shell), text=True, check=True, timeout=30)


def man_reads_it():
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=output("man"), text=True,
                              capture_output=True, check=True, timeout=30)
        assert not done.stderr, done.stderr


def main():
    passed = failed = 0
    for test in (lists_everything, bash_completes, values_are_known, shells_read_them, man_reads_it):
        try:
            test()
            passed += 1
        except (AssertionError, subprocess.CalledProcessError) as error:
            failed += 1
            print(f"{test.__name__}: {error}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
