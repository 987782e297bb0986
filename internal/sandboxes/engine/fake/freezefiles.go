package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// begin is how an instance's PID 1 is started, at first and anew.
type begin struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
}

func (e *Engine) beginPath(id string) string { return filepath.Join(e.instanceDir(id), "begin.json") }

// pidPath is a file with the number of a PID 1 that was started anew.
func (e *Engine) pidPath(id string) string { return filepath.Join(e.instanceDir(id), "pid") }

func (e *Engine) keepBegin(spec engine.Spec) error {
	data, err := json.Marshal(begin{Argv: spec.Init, Env: spec.Env})
	if err != nil {
		return err
	}
	return os.WriteFile(e.beginPath(spec.ID), data, 0o600)
}

// packing is the command that writes the instance's own files to dir.
func (e *Engine) packing(id, dir string) ([]string, error) {
	tar, err := exec.LookPath("tar")
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the fake engine's images of files take the program tar")
	}
	return []string{tar, "-C", e.Own(id), "-cf", filepath.Join(dir, tarName), "."}, nil
}

// unpack puts the files of an image into own.
func unpack(ctx context.Context, dir, own string) error {
	tar := exec.CommandContext(ctx, "tar", "-C", own, "-xpf", filepath.Join(dir, tarName))
	if out, err := tar.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", filepath.Join(dir, tarName), err, out)
	}
	return nil
}

// FreezeFiles writes the instance's own files, and kills the process.
func (i *Instance) FreezeFiles(ctx context.Context, dir string) error {
	steps, err := i.engine.packing(i.id, dir)
	if err != nil {
		return err
	}
	return i.freeze(ctx, dir, keeper.Freeze{
		ID: i.id, Fresh: true, Steps: [][]string{steps}, Log: filepath.Join(i.engine.instanceDir(i.id), "init.log"),
	})
}

// filesOnly tells whether an image is FreezeFiles'.
func filesOnly(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, tarName))
	return err == nil
}

// launcher starts a program in the background and writes its number to a file. The
// keeper's socket, its stdin, is handed on by hand: a shell gives what it starts so
// another one.
const launcher = `exec 3<&0; "$@" <&3 3<&- & echo $! >"$0"`

// startAnew starts PID 1 again, on the files in dir, and names it to the keeper. Of one
// that runs already it makes sure of the latter.
func (i *Instance) startAnew(ctx context.Context, dir string, known keeper.Sandbox) error {
	e := i.engine
	data, err := os.ReadFile(e.beginPath(i.id))
	var how begin
	if err == nil {
		err = json.Unmarshal(data, &how)
	}
	if err == nil && known.Frozen {
		err = errors.Join(os.RemoveAll(e.Own(i.id)), e.makeOwn(i.id), unpack(ctx, dir, e.Own(i.id)))
	}
	if err != nil {
		return err
	}
	err = e.keeper.Thaw(ctx, keeper.Launch{
		ID: i.id, Fresh: true, Env: how.Env, Dir: e.instanceDir(i.id), Log: filepath.Join(e.instanceDir(i.id), "init.log"),
		Argv: append([]string{"/bin/sh", "-c", launcher, e.pidPath(i.id)}, how.Argv...),
	})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(e.pidPath(i.id))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	id, err := process.Of(pid)
	if err != nil {
		id = process.ID{Pid: pid} // it has ended already
	}
	return e.keeper.Track(ctx, i.id, []process.ID{id})
}
