package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// bareContainer is the floor of a container's create: the same runc, bundle and mounts, with
// /bin/true in the place of the guest agent. The stage that makes the mounts becomes a
// program of ours, so that runc alone is counted. It ends when runc has taken its container
// away.
type bareContainer struct {
	cofferdam string
	runc      string
	dir       string // bundles, and runc's own record
	origin    string // the id of the sandbox that ours are made from
	config    []byte
	plan      map[string]any
	place     string
	n         int
}

// waits becomes runc when it is told to. The stage calls it as it would call runc, with
// "--root DIR run --detach --bundle DIR ID"; what does not detach ends with its container.
const waits = `#!/bin/sh
root=$2 bundle=$6 id=$7
echo ready; read -r _
exec "$RUNC" --root "$root" run --bundle "$bundle" "$id" </dev/null
`

// newBareContainer takes the bundle of a sandbox that lives as its model.
func newBareContainer(b *bench, sandbox string) (*bareContainer, error) {
	c := &bareContainer{cofferdam: filepath.Join(b.opts.bin, "cofferdam"), dir: filepath.Join(b.dir, "container"), origin: sandbox}
	from := filepath.Join(b.state(), "sandboxes", sandbox, containersEngine)
	data, err := os.ReadFile(filepath.Join(from, "stage.json"))
	if err != nil {
		return nil, err
	}
	plan := json.NewDecoder(bytes.NewReader(data))
	plan.UseNumber() // ids are not to become fractions
	if err := plan.Decode(&c.plan); err != nil {
		return nil, err
	}
	var ok [2]bool
	c.runc, ok[0] = c.plan["runc"].(string)
	c.place, ok[1] = c.plan["place"].(string)
	if !ok[0] || !ok[1] {
		return nil, errors.New("stage.json names no program or no place")
	}
	var config specs.Spec
	if data, err = os.ReadFile(filepath.Join(from, "config.json")); err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		return nil, err
	}
	config.Process.Args = []string{"/bin/true"}
	config.Linux.CgroupsPath = "/" + benchGroups() + "/" + sandbox
	if c.config, err = json.Marshal(config); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "root"), 0o711); err != nil {
		return nil, err
	}
	program := filepath.Join(c.dir, "waits")
	c.plan["runc"], c.plan["root"] = program, filepath.Join(c.dir, "root")
	script := bytes.ReplaceAll([]byte(waits), []byte(`"$RUNC"`), []byte(c.runc))
	return c, os.WriteFile(program, script, 0o755)
}

// once runs it; the making of the bundle and the mounts is not counted.
func (c *bareContainer) once(ctx context.Context) (took time.Duration, err error) {
	c.n++
	id := "bare-" + strconv.Itoa(c.n)
	bundle := filepath.Join(c.dir, id)
	if err := os.Mkdir(bundle, 0o711); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bundle)) }()
	c.plan["id"] = id
	plan, err := json.Marshal(c.plan)
	if err != nil {
		return 0, err
	}
	config := bytes.ReplaceAll(c.config, []byte(c.origin), []byte(id))
	err = errors.Join(os.WriteFile(filepath.Join(bundle, "stage.json"), plan, 0o600), os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600))
	if err != nil {
		return 0, err
	}
	return timed(exec.CommandContext(ctx, c.cofferdam, "stage", containersEngine, bundle))
}
