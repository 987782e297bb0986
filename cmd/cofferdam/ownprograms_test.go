package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ownInstallation is a project whose virtual environment has Cofferdam's programs, as the package of Python
// brings them, and what runs them with a state of its own.
type ownInstallation struct {
	project, bin string
	cofferdam    func(args ...string) (string, error)
}

func newOwnInstallation(t *testing.T) ownInstallation {
	t.Helper()
	if testing.Short() {
		t.Skip("makes sandboxes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("makes sandboxes as root")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(state), 0o755); err != nil { // runc's users pass by
		t.Fatal(err)
	}
	project := filepath.Join(top, "project")
	bin := filepath.Join(project, ".venv", "bin")
	laidFiles(t, top, 0o755, map[string]string{"project/.venv/pyvenv.cfg": "home = /usr/bin\n", "project/.venv/bin/activate": "", "project/.venv/share/x": "", "project/share/x": ""})
	install(t, bin)
	o := ownInstallation{project: project, bin: bin, cofferdam: func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "cofferdam"), args...)
		cmd.Dir = project
		cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+filepath.Join(state, "state"), "COFFERDAM_RUNTIME="+filepath.Join(state, "run"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}}
	t.Cleanup(func() { _, _ = o.cofferdam("stop", "--force") })
	return o
}

// TestOwnProgramsAreNoGuests: a project's virtual environment has the program and the engine's. A run
// that may write to the project puts programs of its own there, by whatever way, and the host must not run them. The
// controls: what the run writes elsewhere in the project is there, and the next run, by the same
// programs, ends well.
func TestOwnProgramsAreNoGuests(t *testing.T) {
	o := newOwnInstallation(t)
	ran := filepath.Join(filepath.Dir(o.project), "ran")
	evil := `evil() { printf '#!/bin/sh\nid > ` + ran + `\nexec /bin/true\n' > "$1"; chmod 755 "$1"; }; touch wrote-$NAME; `
	for name, c := range map[string]struct {
		mounts []string
		script string
	}{
		"replaced":        {[]string{".:/workspace:rw"}, `rm -f .venv/bin/runsc; evil .venv/bin/runsc; evil .venv/bin/cofferdam`},
		"renamed":         {[]string{".:/workspace:rw"}, `mv .venv/bin/runsc .venv/bin/runsc.was; evil .venv/bin/runsc`},
		"above renamed":   {[]string{".:/workspace:rw"}, `mv .venv .venv2; mkdir -p .venv/bin; evil .venv/bin/runsc; evil .venv/bin/cofferdam`},
		"bin renamed":     {[]string{".:/workspace:rw"}, `mv .venv/bin .venv/bin2; mkdir .venv/bin; evil .venv/bin/runsc`},
		"unmounted":       {[]string{".:/workspace:rw"}, `umount .venv; umount -l .venv; evil .venv/bin/runsc; evil .venv/bin/cofferdam`},
		"hard link":       {[]string{".:/workspace:rw"}, `ln .venv/bin/runsc linked && evil linked`},
		"mounted twice":   {[]string{".:/workspace:rw", ".:/other:rw"}, `cd /other; evil .venv/bin/runsc; mv .venv .venv2; mkdir -p .venv/bin; evil .venv/bin/runsc`},
		"from above":      {[]string{"..:/above:rw", ".:/workspace:rw"}, `cd /above; mv project project2; mkdir -p project/.venv/bin; evil project/.venv/bin/runsc`},
		"laid over again": {[]string{".:/workspace:rw", ".venv/share:/workspace/share:rw"}, `evil .venv/bin/runsc`},
	} {
		for _, engine := range []string{"gvisor", "runc"} {
			t.Run(name+" under "+engine, func(t *testing.T) {
				args := []string{"run", "--template", "host", "--engine", engine, "--env", "NAME=" + engine}
				for _, m := range c.mounts {
					args = append(args, "--mount", m)
				}
				out, err := o.cofferdam(append(args, "--workdir", "/workspace", "--", "sh", "-c", evil+c.script+"; true")...)
				wrote := filepath.Join(o.project, "wrote-"+engine)
				if _, is := os.Stat(wrote); (is == nil) != (err == nil) {
					t.Errorf("the control: the run: %v, what it wrote: %v: %s", err, is, out)
				}
				if err != nil && !strings.Contains(out, "uv tool install") {
					t.Errorf("the run is not refused with what to do: %s", out)
				}
				_ = os.Remove(wrote)
				out, err = o.cofferdam("run", "--template", "host", "--", "true")
				if id, is := os.ReadFile(ran); is == nil {
					t.Fatalf("the host ran the guest's program: %s (the run: %v, %s)", id, err, out)
				} else if err != nil {
					t.Fatalf("the control: the next run: %v: %s", err, out)
				}
			})
		}
	}
}

// install puts Cofferdam's programs into a directory.
func install(t *testing.T, bin string) {
	t.Helper()
	for _, name := range []string{"cofferdam", "runsc"} {
		if out, err := exec.CommandContext(t.Context(), "cp", filepath.Join("..", "..", "bin", name), bin).CombinedOutput(); err != nil {
			t.Fatalf("needs make build: %s", out)
		}
	}
}

// exec runs a shell's line in a sandbox.
func (o ownInstallation) exec(id, line string) (string, error) {
	return o.cofferdam("exec", id, "--", "sh", "-c", line)
}

// TestOwnProgramsMadeAnew: while a sandbox lives, a person makes the virtual environment anew, and with the
// old one goes what kept the agent from it. The host must not run what the agent puts there, neither the daemon that
// lives, nor the next one. The controls: before that the agent can't write there, afterwards it can, and
// an environment that is made anew when the sandbox is gone is run from.
func TestOwnProgramsMadeAnew(t *testing.T) {
	for _, engine := range []string{"gvisor", "runc"} {
		t.Run(engine, func(t *testing.T) {
			o := newOwnInstallation(t)
			venv := filepath.Dir(o.bin)
			ran := filepath.Join(filepath.Dir(o.project), "ran")
			made := func() {
				if err := errors.Join(os.RemoveAll(venv), os.MkdirAll(o.bin, 0o755)); err != nil {
					t.Fatal(err)
				}
				laidFiles(t, venv, 0o755, map[string]string{"pyvenv.cfg": "home = /usr/bin\n"})
				install(t, o.bin)
			}
			create := func(name string) string {
				id, err := o.cofferdam("create", "--template", "host", "--engine", engine, "--mount", ".:/workspace:rw", "--workdir", "/workspace")
				if err != nil {
					t.Fatalf("%s: %v: %s", name, err, id)
				}
				words := strings.Fields(id)
				return words[len(words)-1]
			}
			gone := create("the first")
			if out, err := o.cofferdam("rm", gone); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			made()
			id := create("the control: made anew when the sandbox is gone")
			if out, err := o.exec(id, "touch .venv/bin/more"); err == nil {
				t.Fatalf("the control: the environment is not covered: %s", out)
			}
			if err := os.Rename(venv, venv+".away"); err != nil {
				t.Fatal(err)
			}
			if out, err := o.exec(id, "touch .venv.away/bin/more"); err == nil {
				t.Errorf("what was covered is written under another name, and its mark is the same when it is back: %s", out)
			}
			if err := os.Rename(venv+".away", venv); err != nil {
				t.Fatal(err)
			}
			made()
			const evil = `printf '#!/bin/sh\nid > %s\nexec /bin/true\n' > .venv/bin/runsc && chmod 755 .venv/bin/runsc`
			if out, err := o.exec(id, fmt.Sprintf("rm .venv/bin/runsc; "+evil, ran)); err != nil {
				t.Fatalf("the control: the environment that was made anew is not open: %v: %s", err, out)
			}
			out, err := o.cofferdam("run", "--template", "host", "--engine", "gvisor", "--", "true")
			if said, is := os.ReadFile(ran); is == nil {
				t.Fatalf("the daemon that lives ran the guest's program: %s (%v: %s)", said, err, out)
			}
			if out, err := o.cofferdam("stop", "--force"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			out, err = o.cofferdam("run", "--template", "host", "--engine", "gvisor", "--", "true")
			if said, is := os.ReadFile(ran); is == nil {
				t.Errorf("the next daemon ran the guest's program: %s", said)
			}
			if err == nil || !strings.Contains(out, "uv tool install") {
				t.Errorf("the next daemon does not say what to do: %v: %s", err, out)
			}
		})
	}
}

// TestOwnInstallationItselfIsNotMounted: there is nothing that could be shown read-only where the mount is
// the installation or a part of it. The control: read-only it is shown.
func TestOwnInstallationItselfIsNotMounted(t *testing.T) {
	o := newOwnInstallation(t)
	for _, dir := range []string{".venv", filepath.Join(".venv", "bin"), filepath.Join(".venv", "bin", "runsc")} {
		out, err := o.cofferdam("run", "--template", "host", "--mount", dir+":/w:rw", "--", "true")
		if err == nil || !strings.Contains(out, "uv tool install") {
			t.Errorf("%s: %v: %s", dir, err, out)
		}
		if out, err := o.cofferdam("run", "--template", "host", "--mount", dir+":/w", "--", "true"); err != nil {
			t.Errorf("the control: %s: %v: %s", dir, err, out)
		}
	}
}
