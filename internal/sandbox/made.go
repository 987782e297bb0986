package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

const (
	madePrefix = "made-"
	madeForm   = "-1.json" // the number is the form's
)

// made is what a sandbox was made with, as far as a copy of it needs that and its
// Info does not have it. It is kept in a file as long as the sandbox lives.
type made struct {
	Spec engine.Spec       `json:"spec"`
	Env  map[string]string `json:"env,omitempty"` // of the request
	// Mounts are those of the request; nil, too, for what an older version made.
	Mounts []mounts.Mount `json:"mounts,omitempty"`
	// Agent is the digest of the guest agent's binary: a copy's memory is of no use
	// with another one.
	Agent string `json:"agent"`
}

func (m *Manager) madePath(id string) string {
	return filepath.Join(m.cfg.BaselineDir, madePrefix+id+madeForm)
}

// keepMade writes what a sandbox is made with. It is not brought to the disk: after
// a loss of power the sandbox does not live either.
func (m *Manager) keepMade(p *plan, req Request) error {
	agent, err := m.agentDigest()
	if err != nil {
		return err
	}
	data, err := json.Marshal(made{Spec: p.spec, Env: req.Env, Mounts: req.Mounts, Agent: agent})
	if err != nil {
		return err
	}
	if err := wholefile.ReplaceVolatile(m.madePath(p.info.ID), data, 0o600); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "what the sandbox is made with can't be kept")
	}
	return nil
}

func (m *Manager) loadMade(id string) (made, error) {
	var k made
	data, err := os.ReadFile(m.madePath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return k, fault.New(fault.ErrConflict, "the sandbox %s was made by an older version of Cofferdam, which kept too little for a copy", id)
	}
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil {
		return k, fault.Wrap(fault.ErrUnavailable, err, "what the sandbox %s was made with can't be read", id)
	}
	return k, nil
}

func (m *Manager) forgetMade(id string) {
	if err := os.Remove(m.madePath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.cfg.Log.Warn("what a sandbox was made with can't be removed", "sandbox", id, "err", err)
	}
}

// sweepMade takes away the files of sandboxes that are gone.
func (m *Manager) sweepMade(lives func(id string) bool) {
	kept, _ := filepath.Glob(filepath.Join(m.cfg.BaselineDir, madePrefix+"*")) // the pattern is well formed
	for _, path := range kept {
		name := strings.TrimSuffix(filepath.Base(path), ".new") // one that is just being written
		id, whole := strings.CutSuffix(strings.TrimPrefix(name, madePrefix), madeForm)
		if whole && lives(id) {
			continue
		}
		if err := os.Remove(path); err != nil {
			m.cfg.Log.Warn("what a sandbox was made with can't be removed", "file", path, "err", err)
		}
	}
}

// agentDigest is that of the guest agent's files, which do not change while the
// daemon runs.
func (m *Manager) agentDigest() (string, error) {
	m.agentOnce.Do(func() { m.agent, m.agentErr = digestOfDir(m.cfg.AgentDir) })
	return m.agent, m.agentErr
}

func digestOfDir(dir string) (string, error) {
	sum := sha256.New()
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer func() { _ = root.Close() }() // it was only read
		err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			f, err := root.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, _ = io.WriteString(sum, path+"\x00") // a digest takes all
			_, err = io.Copy(sum, f)
			return err
		})
	}
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the guest agent's files can't be read")
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
