package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// installation is a daemon of a test's own, with its state.
type installation struct {
	t       *testing.T
	State   string
	Runtime string
	Client  *client.Client
	Daemon  *exec.Cmd
}

// start runs a daemon in the foreground with a configuration file; it and its
// sandboxes end with the test.
func start(t *testing.T, config string) *installation {
	t.Helper()
	root := repository(t)
	buildTemplate(t, root)
	runtime, err := os.MkdirTemp("", "cfd") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtime) })
	in := &installation{t: t, State: filepath.Join(t.TempDir(), "state"), Runtime: runtime}
	if err := os.Mkdir(in.State, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(sharedState(root), "templates"), filepath.Join(in.State, "templates")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in.State, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	in.serve(filepath.Join(binaries(root), "cofferdam"))
	return in
}

func (in *installation) serve(binary string) {
	in.t.Helper()
	log, err := os.Create(filepath.Join(in.Runtime, "daemon.log"))
	if err != nil {
		in.t.Fatal(err)
	}
	defer log.Close()
	in.Daemon = exec.Command(binary, "serve")
	in.Daemon.Env = in.environ()
	in.Daemon.Stdout, in.Daemon.Stderr = log, log
	if err := in.Daemon.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.Client = client.New(filepath.Join(in.Runtime, "daemon.sock"))
	in.t.Cleanup(in.stop)
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := in.Client.Version(ctx); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			in.t.Fatalf("the daemon did not come up:\n%s", in.log())
		case <-tick.C:
		}
	}
}

func (in *installation) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := in.Client.Shutdown(ctx, true); err != nil {
		in.t.Errorf("stop the daemon: %v\n%s", err, in.log())
		in.Daemon.Process.Signal(syscall.SIGTERM)
	}
	in.Daemon.Wait()
	// Another daemon than ours may have been asked, which a client has started: it still writes into
	// the test's folders for a moment, and its keeper ends with it.
	if poll(ctx, func() bool { return len(in.servers()) == 0 }) != nil {
		in.t.Errorf("a daemon or a keeper of the test is still there: %v\n%s", in.servers(), in.log())
	}
	if in.t.Failed() {
		in.t.Logf("the daemon's log:\n%s", in.log())
	}
}

// servers are the processes of this installation that serve, whoever has started them: daemons
// and keepers, by their numbers.
func (in *installation) servers() (pids []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range procs {
		env, _ := os.ReadFile(filepath.Join(dir, "environ")) // none of a process that ends
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		serves := bytes.Contains(args, []byte("\x00serve\x00")) || bytes.Contains(args, []byte("\x00keeper\x00"))
		if serves && bytes.Contains(env, []byte(in.Runtime)) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

func (in *installation) log() []byte {
	data, _ := os.ReadFile(filepath.Join(in.Runtime, "daemon.log"))
	lines, _ := os.ReadFile(in.paths().KeeperLog())
	if last := 64 << 10; len(lines) > last {
		lines = lines[len(lines)-last:]
	}
	return append(data, append([]byte("\nthe end of the keeper's:\n"), lines...)...)
}

// create makes a sandbox under a policy.
func (in *installation) create(template, policy string) api.Sandbox {
	in.t.Helper()
	sb, err := in.Client.CreateSandbox(in.t.Context(), api.CreateSandbox{
		Template: template, Policy: api.Policy{Document: []byte(policy)}, Linger: true,
	})
	if err != nil {
		in.t.Fatalf("create: %v\n%s", err, in.log())
	}
	return sb
}

// result is what a command did.
type result struct {
	Stdout, Stderr string
	Exit           api.Exit
}

// run runs a command to its end.
func (in *installation) run(sb api.Sandbox, argv ...string) result {
	in.t.Helper()
	cmd, err := in.Client.StartCommand(in.t.Context(), sb.ID, api.StartCommand{Argv: argv})
	if err != nil {
		in.t.Fatalf("start %q: %v", argv, err)
	}
	at, err := in.Client.Attach(in.t.Context(), sb.ID, cmd.ID, 0)
	if err != nil {
		in.t.Fatalf("attach to %q: %v", argv, err)
	}
	defer at.Close()
	var out, complaint bytes.Buffer
	for event, err := range at.Events() {
		if err != nil {
			in.t.Fatalf("%q: %v", argv, err)
		}
		out.Write(event.Stdout)
		complaint.Write(event.Stderr)
		if event.Exit != nil {
			return result{out.String(), complaint.String(), *event.Exit}
		}
	}
	in.t.Fatalf("%q ended without an exit", argv)
	return result{}
}
