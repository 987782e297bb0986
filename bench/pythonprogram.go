package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// pythonProgram is a Python program on the host that measures once for each line it
// is given, and prints a line of what it measured.
type pythonProgram struct {
	what  string // for people
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// pythonOf is a virtual environment of the bench's own, by its name; what it has to have is
// installed once, by this machine's pip. It gives the environment's directory.
func pythonOf(ctx context.Context, b *bench, name, imports string, packages ...string) (string, error) {
	dir := filepath.Join(b.home, "bench", name)
	if err := exec.CommandContext(ctx, filepath.Join(dir, "bin", "python"), "-c", "import "+imports).Run(); err == nil {
		return dir, nil
	}
	b.progress.say("installing %s (once)", imports)
	argv := append([]string{"-c", `python3 -m venv --clear "$0" && "$0/bin/pip" install --quiet --disable-pip-version-check "$@"`, dir}, packages...)
	if out, err := exec.CommandContext(ctx, "sh", argv...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s can't be installed: %w\n%s", imports, err, out)
	}
	return dir, nil
}

// startPython starts a program, given as text, in an environment of pythonOf.
func startPython(ctx context.Context, what, dir, program string, variables []string, args ...string) (*pythonProgram, error) {
	p := &pythonProgram{what: what, cmd: exec.CommandContext(ctx, filepath.Join(dir, "bin", "python"), append([]string{"-c", program}, args...)...)}
	p.cmd.Env = append(os.Environ(), variables...)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	return p, p.cmd.Start()
}

// measure has the program measure once, and gives what it printed.
func (p *pythonProgram) measure() ([]byte, error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return nil, err
	}
	if !p.lines.Scan() {
		return nil, errors.Join(fmt.Errorf("%s says nothing more", p.what), p.lines.Err())
	}
	return p.lines.Bytes(), nil
}

func (p *pythonProgram) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait() // how it ends is of no interest
}
