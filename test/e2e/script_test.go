package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/*.txt.
func TestScripts(t *testing.T) {
	t.Parallel()
	root := repository(t)
	buildTemplate(t, root)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       os.Getenv("COFFERDAM_UPDATE") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return install(env, root) },
		Cmds:                commands(),
		Condition:           condition,
	})
}

// condition: [root] holds when the tests run as root, [rootless] where the
// kernel lets normal users make namespaces, [long] with COFFERDAM_LONG, and where
// golden files are written: then all of them are.
func condition(cond string) (bool, error) {
	switch cond {
	case "root":
		return os.Geteuid() == 0, nil
	case "rootless":
		return rootless(), nil
	case "long":
		return os.Getenv("COFFERDAM_LONG") != "" || os.Getenv("COFFERDAM_UPDATE") != "", nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// repository is the module's root; its binaries must be built.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"cofferdam", "runsc"} {
		if _, err := os.Stat(filepath.Join(binaries(root), b)); err != nil {
			t.Fatalf("%s is missing in %s: run make build first", b, binaries(root))
		}
	}
	return root
}

// binaries is the folder of the product under test: bin/, or that which
// COFFERDAM_BIN names.
func binaries(root string) string {
	if dir := os.Getenv("COFFERDAM_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(root, "bin")
}

// sharedState is the installation whose templates all scripts use.
func sharedState(root string) string { return filepath.Join(root, ".cofferdam") }

// template is the debian template, which is built once for all tests.
var template struct {
	once sync.Once
	err  error
}

// buildTemplate builds the template, for the first who needs it: two at a time
// would be two daemons of one installation.
func buildTemplate(t *testing.T, root string) {
	t.Helper()
	template.once.Do(func() { template.err = buildTemplateNow(root) })
	if template.err != nil {
		t.Fatal(template.err)
	}
}

func buildTemplateNow(root string) error {
	run, err := os.MkdirTemp("", "cfd")
	if err != nil {
		return err
	}
	defer os.RemoveAll(run)
	cofferdam := func(args ...string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // no test's own: all wait for it
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(binaries(root), "cofferdam"), args...)
		cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+sharedState(root), "COFFERDAM_RUNTIME="+run)
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cofferdam %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := cofferdam("template", "build", "--if-needed", "debian"); err != nil {
		return err
	}
	return cofferdam("stop")
}

// install gives a script an installation of its own and takes it away at its end.
func install(env *testscript.Env, root string) error {
	state := filepath.Join(env.WorkDir, ".state")
	if err := os.Mkdir(state, 0o711); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(sharedState(root), "templates"), filepath.Join(state, "templates")); err != nil {
		return err
	}
	runtime, err := os.MkdirTemp("", "cfd")
	if err != nil {
		return err
	}
	bin := binaries(root)
	env.Setenv("COFFERDAM_STATE", state)
	env.Setenv("COFFERDAM_RUNTIME", runtime)
	env.Setenv("BIN", bin)
	env.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	env.Setenv("REPO", root)
	for _, kv := range os.Environ() {
		if key, value, _ := strings.Cut(kv, "="); ofTheClient(key) {
			env.Setenv(key, value)
		}
	}
	env.Defer(func() { remove(bin, state, runtime) })
	return nil
}

// ofTheClient says whether a variable is of how this machine's own clients reach
// their registry: the product discovers its upstreams with it.
func ofTheClient(key string) bool {
	switch key {
	case "HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PYENV_VERSION", "PYENV_ROOT",
		"NODE_EXTRA_CA_CERTS", "GOPROXY", "GOSUMDB", "GOENV":
		return true
	}
	upper := strings.ToUpper(key)
	return strings.HasPrefix(upper, "PIP_") || strings.HasPrefix(upper, "UV_") || strings.HasPrefix(upper, "NPM_CONFIG_") || strings.HasSuffix(upper, "_PROXY")
}

// remove ends the script's daemon with all its sandboxes.
func remove(bin, state, runtime string) {
	if _, err := os.Stat(filepath.Join(runtime, "daemon.sock")); !errors.Is(err, fs.ErrNotExist) {
		cmd := exec.Command(filepath.Join(bin, "cofferdam"), "stop", "--force")
		cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+state, "COFFERDAM_RUNTIME="+runtime)
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "stop the script's daemon: %v\n%s", err, out)
		}
	}
	os.RemoveAll(runtime)
}
