package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// bareRun is the floor of a create: the same runsc, root, mounts and limits,
// with /bin/true in the place of the guest agent and nothing of Cofferdam.
type bareRun struct {
	runsc  string
	dir    string // bundles, and runsc's own record
	origin string // the bundle that ours is made from
	config []byte
	folder []string // names of the directories in a bundle
	n      int
}

// newBareRun takes the bundle of a real sandbox as its model.
func (b *bench) newBareRun(ctx context.Context) (*bareRun, error) {
	box, err := b.sandbox(ctx, closedPolicy)
	if err != nil {
		return nil, err
	}
	r := &bareRun{
		runsc: filepath.Join(b.opts.bin, "runsc"), dir: filepath.Join(b.dir, "bare"),
		origin: filepath.Join(b.state(), "sandboxes", box.ID, "gvisor"),
	}
	if err := r.model(); err != nil {
		return nil, fmt.Errorf("the model of the bare run: %w", err)
	}
	return r, b.daemon.client.DestroySandbox(ctx, box.ID)
}

func (r *bareRun) model() error {
	data, err := os.ReadFile(filepath.Join(r.origin, "config.json"))
	if err != nil {
		return err
	}
	var config specs.Spec
	if err := json.Unmarshal(data, &config); err != nil {
		return err
	}
	config.Process.Args = []string{"/bin/true"}
	if r.config, err = json.Marshal(config); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.origin)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			r.folder = append(r.folder, e.Name())
		}
	}
	return os.MkdirAll(filepath.Join(r.dir, "root"), 0o711) //nolint:gosec // the gofer, another user, passes through
}

// once runs it; the making and removing of the bundle is not counted.
func (r *bareRun) once(ctx context.Context) (took time.Duration, err error) {
	r.n++
	bundle := filepath.Join(r.dir, strconv.Itoa(r.n))
	for _, name := range append([]string{""}, r.folder...) {
		if err := os.Mkdir(filepath.Join(bundle, name), 0o755); err != nil { //nolint:gosec // as above
			return 0, err
		}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bundle)) }()
	config := bytes.ReplaceAll(r.config, []byte(r.origin), []byte(bundle))
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600); err != nil {
		return 0, err
	}
	id := "bare-" + strconv.Itoa(r.n)
	cmd := exec.CommandContext(ctx, r.runsc, "--root="+filepath.Join(r.dir, "root"), "--ignore-cgroups", "--network=none", //nolint:gosec // the binary under measurement
		"--host-uds=none", "--platform=systrap", "--gofer-network-namespace=new",
		"--overlay2=root:dir="+bundle+",size=4294967296", "run", "--bundle="+bundle, id)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("runsc run: %w: %s", err, said.Bytes())
	}
	return time.Since(began), nil
}
