package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// Options say what to try.
type Options struct {
	// Executable is this program: it is the daemon, the keeper, the gateway and
	// the exporter of the drill.
	Executable string
	// User is the user's own installation: its templates and its way to isolate are
	// used, and nothing of it is changed.
	User config.Paths
	// Engine and Template are the user's defaults if they are "".
	Engine, Template string
}

// longestWait bounds how long the drill's daemon may take to come up or to end.
const longestWait = 60 * time.Second

// installation is the drill's own: two directories and a daemon.
type installation struct {
	options  Options
	paths    config.Paths
	registry *registry
	client   *client.Client
	daemon   *exec.Cmd
	ended    chan error
	template string
}

// Run plays the drill with a real sandbox and judges the log. An error means that
// it could not be played; what is broken is in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	in := &installation{options: o}
	defer in.removeAll()
	return runDrill(ctx, in, in.wiring())
}

// startInstallation makes the directories, the registry and the daemon.
func (in *installation) startInstallation(ctx context.Context, releases map[string]*Release) error {
	var err error
	if in.registry, err = openRegistry(ctx, releases); err != nil {
		return fmt.Errorf("the drill's registry can't listen: %w", err)
	}
	if in.paths.Runtime, err = os.MkdirTemp("", "cfs"); err != nil { // short: a socket's path has a limit
		return err
	}
	if in.paths.State, err = os.MkdirTemp("", "cofferdam-selftest-"); err != nil {
		return err
	}
	if err := os.Chmod(in.paths.State, 0o711); err != nil { //nolint:gosec // the gateway's user passes through it
		return err
	}
	if err := in.configure(); err != nil {
		return err
	}
	return in.startDaemon(ctx)
}

// configure writes the drill's configuration: the user's way to isolate, and one
// upstream.
func (in *installation) configure() error {
	own, _, err := in.options.User.Load()
	if err != nil {
		return err
	}
	in.template = in.options.Template
	if in.template == "" {
		in.template = own.DefaultTemplate
	}
	if err := os.Symlink(in.options.User.Templates(), in.paths.Templates()); err != nil {
		return err
	}
	document := map[string]any{
		"upstreams": []map[string]string{{
			"ecosystem": "python", "index": "http://" + registryHost + "/simple/", "address": in.registry.address(),
		}},
		"probe_projects": []string{"selftest-" + allowed},
	}
	if own.Runsc != "" {
		document["runsc"] = own.Runsc
	}
	if own.GatewayUID != 0 {
		document["gateway_uid"] = own.GatewayUID
	}
	data, err := yaml.Marshal(document)
	if err != nil {
		return err
	}
	return os.WriteFile(in.paths.File(), data, 0o600)
}

// drillEnvironment leads this program to the drill's own directories.
func (in *installation) drillEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "COFFERDAM_STATE=") || strings.HasPrefix(kv, "COFFERDAM_RUNTIME=")
	})
	return append(env, "COFFERDAM_STATE="+in.paths.State, "COFFERDAM_RUNTIME="+in.paths.Runtime)
}

// startDaemon starts the daemon and returns when it answers.
func (in *installation) startDaemon(ctx context.Context) error {
	log, err := os.Create(filepath.Join(in.paths.State, "selftest.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	in.daemon = exec.Command(in.options.Executable, "serve") //nolint:noctx // it is ended by over or removeAll
	in.daemon.Env, in.daemon.Stdout, in.daemon.Stderr = in.drillEnvironment(), log, log
	in.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us, who end it
	if err := in.daemon.Start(); err != nil {
		return fmt.Errorf("the drill's daemon can't start: %w", err)
	}
	in.ended = make(chan error, 1)
	go func() { in.ended <- in.daemon.Wait() }()
	in.client = client.New(in.paths.DaemonSocket())
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := in.client.Version(ctx); err == nil {
			return nil
		}
		select {
		case err := <-in.ended:
			in.ended <- err
			return fmt.Errorf("the drill's daemon has ended: %s", in.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("the drill's daemon does not answer: %s", in.lastWords())
		case <-tick.C:
		}
	}
}

func (in *installation) lastWords() string {
	data, err := os.ReadFile(filepath.Join(in.paths.State, "selftest.log"))
	if err != nil {
		return err.Error()
	}
	return lastLine(string(data))
}

// endDaemon ends the daemon with its sandboxes, so that the log has its last
// checkpoint.
func (in *installation) endDaemon(ctx context.Context) error {
	if err := in.client.Shutdown(ctx, true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	select {
	case err := <-in.ended:
		in.ended = nil
		return err
	case <-ctx.Done():
		return errors.New("it is still there after a minute")
	}
}

// removeAll takes away all that the drill made, whatever became of it.
func (in *installation) removeAll() {
	if in.ended != nil {
		ctx, cancel := context.WithTimeout(context.Background(), longestWait)
		defer cancel()
		if err := in.endDaemon(ctx); err != nil && in.ended != nil {
			_ = in.daemon.Process.Kill() // it may be gone
			select {
			case <-in.ended: //nolint:errcheck // how it ended does not matter any more
			case <-time.After(longestWait):
			}
		}
	}
	if in.registry != nil {
		in.registry.closeRegistry()
	}
	for _, dir := range []string{in.paths.State, in.paths.Runtime} {
		if dir != "" {
			_ = os.RemoveAll(dir) // in the temporary directory, which is swept
		}
	}
}

// export has this program's own exporter write the log.
func (in *installation) export(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, in.options.Executable, "audit", "export", "--format", "jsonl")
	cmd.Env = in.drillEnvironment()
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, lastLine(complaint.String()))
	}
	return out.Bytes(), nil
}

// decodeLines decodes what the daemon sends as JSON lines.
func decodeLines[T any](each func(yield func(json.RawMessage, error) bool)) ([]T, error) {
	var all []T
	for line, err := range each {
		if err != nil {
			return all, err
		}
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}
