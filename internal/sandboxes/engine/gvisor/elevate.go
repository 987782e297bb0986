package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

var _ engine.PrivilegedRunner = (*Instance)(nil)

// rights are what an elevated program has, and all that it starts: to own and mark files of
// any user, with setgid bits, and to become one. There is none to make devices, to
// mount, to trace, or to signal others. gVisor lets an owner of a file give it capabilities
// without CAP_SETFCAP; they are worth nothing where the bounding set is empty.
func rights() []string {
	return []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETGID", "CAP_SETUID"}
}

// namespaceRight is what the program itself needs to make a pid namespace.
const namespaceRight = "CAP_SYS_ADMIN"

// outputGrace is how long an elevated program's output may stay open after its end: then
// something that it was handed to has it.
const outputGrace = 5 * time.Second

// programDescriptor is what runsc gets the program as: its first extra one.
const programDescriptor = "3"

// Elevate has runsc start one more process in the sandbox, whose rights are the process's
// own: PID 1, and what it starts, have no way to them.
func (i *Instance) Elevate(ctx context.Context, p engine.Elevated) (code int, err error) {
	program, err := os.Open(p.Program)
	if err != nil {
		return 0, err
	}
	defer program.Close()
	b := bundle{dir: i.engine.instanceDir(i.id)}
	described, err := b.writeProcess(elevated(p))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(described)) }()
	runsc, err := i.engine.runscFlags(i.state, b)
	if err != nil {
		return 0, err
	}
	argv := append(runsc, "exec", "--exec-fd="+programDescriptor, "--process="+described, i.id)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.dir, runscEnvironment(), outputGrace
	cmd.Stdin = strings.NewReader("") // a pipe, and no device of the host's
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	cmd.ExtraFiles = []*os.File{program}
	err = cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case ended && exit.Exited():
		return exit.ExitCode(), nil
	}
	return 0, fmt.Errorf("run a program with rights in sandbox %s: %w", i.id, err)
}

// elevated is the process of an elevated program. The inheritable set is what makes it have
// the right to a namespace, since that is not in the bounding set, from which all else comes.
func elevated(p engine.Elevated) *specs.Process {
	all := append(slices.Clone(rights()), namespaceRight)
	return &specs.Process{
		Args: p.Argv, Env: p.Env, Cwd: "/", NoNewPrivileges: true,
		Capabilities: &specs.LinuxCapabilities{
			Bounding: rights(), Inheritable: []string{namespaceRight}, Permitted: all, Effective: all,
		},
	}
}

// writeProcess writes a process for runsc to a file of its own.
func (b bundle) writeProcess(p *specs.Process) (path string, err error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(b.dir, "process-*.json")
	if err != nil {
		return "", err
	}
	path = f.Name()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}
