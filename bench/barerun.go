package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// bareRun is the floor of a create: the same runsc, root, mounts and limits,
// with /bin/true in the place of the guest agent and nothing of Cofferdam. It
// ends when runsc has taken its sandbox away.
type bareRun struct {
	groups *cgroup.Hierarchy
	runsc  string
	dir    string // bundles, and runsc's own record
	origin string // the bundle that ours is made from
	config []byte
	folder []string // names of the directories in a bundle
	boot   []byte   // the id of a boot, which is shown inside
	n      int
}

// newBareRun takes the bundle of a real sandbox as its model.
func (b *bench) newBareRun(ctx context.Context) (*bareRun, error) {
	box, err := b.sandbox(ctx, closedPolicy)
	if err != nil {
		return nil, err
	}
	r := &bareRun{
		groups: cgroup.New(cgroup.Config{Parent: benchGroups(), UID: os.Geteuid()}),
		runsc:  filepath.Join(b.opts.bin, "runsc"), dir: filepath.Join(b.dir, "bare"),
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
	if r.boot, err = os.ReadFile(filepath.Join(r.origin, bootFile)); err != nil {
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
	return os.MkdirAll(filepath.Join(r.dir, "root"), 0o711)
}

// bootFile is the one file of a bundle that is mounted.
const bootFile = "boot_id"

// join enters the control group, says so, waits for a line, and becomes what
// is behind "--": neither the shell's start nor the joining is counted.
const join = `while [ "$1" != -- ]; do echo 0 >"$1" || exit 1; shift; done; shift; echo ready; read -r _; exec "$@" </dev/null`

// once runs it; the making and removing of bundle and group is not counted.
func (r *bareRun) once(ctx context.Context) (took time.Duration, err error) {
	r.n++
	id := "bare-" + strconv.Itoa(r.n)
	bundle := filepath.Join(r.dir, strconv.Itoa(r.n))
	for _, name := range append([]string{""}, r.folder...) {
		if err := os.Mkdir(filepath.Join(bundle, name), 0o755); err != nil {
			return 0, err
		}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bundle)) }()
	if err := os.WriteFile(filepath.Join(bundle, bootFile), r.boot, 0o444); err != nil {
		return 0, err
	}
	config := bytes.ReplaceAll(r.config, []byte(r.origin), []byte(bundle))
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600); err != nil {
		return 0, err
	}
	args := []string{"-c", join, "sh"}
	if group, err := r.group(id); err != nil {
		return 0, err
	} else if group != nil {
		args = append(args, group.Joins()...)
		defer func() { err = errors.Join(err, group.Remove(ctx)) }()
	}
	return timed(exec.CommandContext(ctx, "/bin/sh", append(args,
		"--", r.runsc, "--root="+filepath.Join(r.dir, "root"), "--ignore-cgroups", "--network=none",
		"--host-uds=none", "--platform=systrap", "--gofer-network-namespace=new",
		"--overlay2=root:dir="+bundle+",size=4294967296", "run", "--bundle="+bundle, id)...))
}

// group is like a sandbox's own: without it, bare runsc would share its
// processor differently with whatever else runs.
func (r *bareRun) group(id string) (*cgroup.Group, error) {
	if len(r.groups.Missing()) > 0 {
		return nil, nil //nolint:nilnil // a user without delegated groups has none, and neither have the sandboxes
	}
	return r.groups.Create("", id, cgroup.Limits{MemoryBytes: 2 << 30, CPU: 2, Pids: 4096})
}

// timed runs a join from its go-ahead to its end.
func timed(cmd *exec.Cmd) (time.Duration, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		return 0, errors.Join(fmt.Errorf("join the control group: %w: %s", err, said.Bytes()), cmd.Wait())
	}
	began := time.Now()
	if _, err := in.Write([]byte("\n")); err != nil {
		return 0, err
	}
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("runsc run: %w: %s", err, said.Bytes())
	}
	return time.Since(began), nil
}
