package copies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

const (
	filePrefix = "made-"
	fileForm   = "-1.json" // the number is the form's
)

// Blueprint is what a sandbox was made with, as far as a copy of it needs that and its
// Info does not have it. It is kept in a file as long as the sandbox lives.
type Blueprint struct {
	Spec engine.Spec       `json:"spec"`
	Env  map[string]string `json:"env,omitempty"` // of the request
	// Mounts are those of the request; nil, too, for what an older version made.
	Mounts []mountpolicy.Mount `json:"mounts,omitempty"`
	// Agent is the digest of the guest agent's binary: a copy's memory is of no use
	// with another one.
	Agent string `json:"agent"`
}

// Blueprints are kept in files, by the sandboxes' ids. Safe for concurrent use.
type Blueprints struct {
	dir      string
	agentDir string
	record   *written.Record // of all that sandboxes were ever given to write; nil: none is kept
	log      *slog.Logger

	once     sync.Once // guards the two
	agent    string    // digest of the guest agent's files
	agentErr error

	recording sync.Mutex // held over what is read of writable and done to the record
	mu        sync.Mutex // guards writable
	// writable are by the sandboxes' ids. Of one whose file can't be read it is everything.
	writable map[string][]hostpath.Tree
}

// NewBlueprints are those in a directory, which may have other files; agentDir has the
// guest agent's. record keeps what sandboxes may write of the host beyond their lives; nil:
// nothing is kept.
func NewBlueprints(dir, agentDir string, record *written.Record, log *slog.Logger) *Blueprints {
	return &Blueprints{dir: dir, agentDir: agentDir, record: record, log: log, writable: map[string][]hostpath.Tree{}}
}

func (s *Blueprints) pathOf(id string) string { return filepath.Join(s.dir, filePrefix+id+fileForm) }

// Keep writes what a sandbox is made with today's agent. It is not brought to the disk:
// after a loss of power the sandbox does not live either. The paths of the host that it may write are:
// links that it leaves there stay.
func (s *Blueprints) Keep(id string, b Blueprint) (err error) {
	if b.Agent, err = s.Agent(); err != nil {
		return err
	}
	if err := s.keepWritable(id, b); err != nil {
		return err
	}
	return s.writeBlueprint(id, b)
}

func (s *Blueprints) writeBlueprint(id string, b Blueprint) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := atomicfile.ReplaceVolatile(s.pathOf(id), data, 0o600); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "what the sandbox is made with can't be kept")
	}
	return nil
}

// Load reads what a sandbox was made with.
func (s *Blueprints) Load(id string) (Blueprint, error) {
	var b Blueprint
	data, err := os.ReadFile(s.pathOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return b, fault.New(fault.ErrConflict, "the sandbox %s was made by an older version of Cofferdam, which kept too little for a copy", id)
	}
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		return b, fault.Wrap(fault.ErrUnavailable, err, "what the sandbox %s was made with can't be read", id)
	}
	return b, nil
}

// Forget removes a sandbox's, of which nothing runs any more.
func (s *Blueprints) Forget(id string) {
	s.settleSandbox(id)
	s.mu.Lock()
	delete(s.writable, id)
	s.mu.Unlock()
	if err := os.Remove(s.pathOf(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("what a sandbox was made with can't be removed", "sandbox", id, "err", err)
	}
}

// Sweep takes away the files of sandboxes that are gone.
func (s *Blueprints) Sweep(lives func(id string) bool) {
	kept, _ := filepath.Glob(filepath.Join(s.dir, filePrefix+"*")) // the pattern is well formed
	for _, path := range kept {
		name := strings.TrimSuffix(filepath.Base(path), ".new") // one that is just being written
		id, whole := strings.CutSuffix(strings.TrimPrefix(name, filePrefix), fileForm)
		if whole && lives(id) {
			s.rememberUnknown(id)
			continue
		}
		if err := os.Remove(path); err != nil {
			s.log.Warn("what a sandbox was made with can't be removed", "file", path, "err", err)
		}
	}
	s.settleUnowned()
}

// rememberUnknown notes what a sandbox may write that another daemon made. As long as that is not
// known it may be anywhere, so that no link is followed to a mount's source.
func (s *Blueprints) rememberUnknown(id string) {
	b, err := s.Load(id)
	if err == nil {
		err = s.keepWritable(id, b) // an older version made it, which kept no record
	}
	if err != nil {
		s.log.Warn("where a sandbox may write is not known, so that no mount leads through a link until it is destroyed", "sandbox", id, "err", err)
		s.mu.Lock()
		s.writable[id] = []hostpath.Tree{{Path: "/"}}
		s.mu.Unlock()
	}
}

// Agent is the digest of the guest agent's files, which do not change while the daemon
// runs.
func (s *Blueprints) Agent() (string, error) {
	s.once.Do(func() { s.agent, s.agentErr = digestOfDir(s.agentDir) })
	return s.agent, s.agentErr
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
