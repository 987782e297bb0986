package namedpolicy

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

// Change is a line of a policy's history.
type Change struct {
	Time   time.Time `json:"time"`
	Digest string    `json:"digest,omitempty"` // "": it was removed
	Origin string    `json:"origin,omitempty"` // where the text came from
}

// maxOrigin bounds what is kept of where a text came from.
const maxOrigin = 4_096

func (s *Store) historyPath(name string) string { return filepath.Join(s.dir, name+".history") }

// publishDocument notes the change and replaces the document. A crash between the two
// leaves a digest in the history that was never in force; the other order would
// leave one out that was.
func (s *Store) publishDocument(name, origin string, text []byte) error {
	p, err := policy.Parse(origin, text)
	if err != nil {
		return err
	}
	if len(origin) > maxOrigin {
		origin = origin[:maxOrigin]
	}
	if err := s.noteChange(name, Change{Time: time.Now().UTC(), Digest: p.Digest(), Origin: origin}); err != nil {
		return err
	}
	return atomicfile.Replace(s.pathOf(name), text, 0o600)
}

// noteChange appends a line to a policy's history. A torn last line is ended first.
func (s *Store) noteChange(name string, c Change) (err error) {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.historyPath(name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if last := make([]byte, 1); info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Sync()
}
