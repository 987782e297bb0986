package gvisor

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

// TestASweepKillsNobodyElse: that a process names a bundle is no reason to kill it.
// It is killed if it runs runsc, in a session that a start of ours began.
func TestASweepKillsNobodyElse(t *testing.T) {
	if !processtest.Inside(t) { // it leads a session of its own there, which lives
		return
	}
	dir := t.TempDir()
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	runsc, replaced := filepath.Join(dir, "runsc"), filepath.Join(dir, "replaced", "runsc")
	if err := os.Mkdir(filepath.Dir(replaced), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{runsc, replaced} {
		if err := os.WriteFile(path, shell, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	e, bundle := New(Config{Runsc: runsc, StateDir: dir}, nil), filepath.Join(dir, "sandboxes", "box", "gvisor")
	other := filepath.Join(dir, "sandboxes", "box-2", "gvisor")
	tests := []struct {
		what, program, arg string
		session, dies      bool
	}{
		{"runsc with the bundle as an option", runsc, "--bundle=" + bundle, true, true},
		{"runsc with the bundle as an argument", runsc, bundle, true, true},
		{"runsc that has been replaced since", replaced, "--bundle=" + bundle, true, true},
		{"another program in a session of its own", "/bin/sh", "--bundle=" + bundle, true, false},
		{"another program", "/bin/sh", bundle, false, false},
		{"runsc that somebody else began", runsc, "--bundle=" + bundle, false, false},
		{"runsc of another sandbox", runsc, "--bundle=" + other, true, false},
	}
	var all []process.ID
	for _, tt := range tests {
		all = append(all, begin(t, tt.program, tt.arg, tt.session))
	}
	if err := os.Remove(replaced); err != nil {
		t.Fatal(err)
	}
	if err := e.strays("box").Kill(t.Context()); err != nil {
		t.Error(err)
	}
	for i, tt := range tests {
		now, err := process.Read(all[i].Pid)
		if died := err != nil || now.Dead; died != tt.dies {
			t.Errorf("%s: died %t", tt.what, died)
		}
	}
	// Of a process that is another's a record's number says nothing.
	for i, tt := range tests {
		if got := e.findProcess(all[i].Pid, "box"); got.Start != 0 && tt.program == "/bin/sh" {
			t.Errorf("%s: taken for the sandbox's", tt.what)
		}
	}
}

// begin starts a shell that waits, with an argument.
func begin(t *testing.T, program, arg string, session bool) process.ID {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-c", "echo ready; read end", "sh", arg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // Killed, or at its end.
	})
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	id, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
