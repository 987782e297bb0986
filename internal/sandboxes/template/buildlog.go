package template

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// buildLog is the file in the store that has the output and the steps of a name's
// last build, each step with the time since the beginning.
type buildLog struct {
	path  string
	began time.Time

	mu   sync.Mutex // guards the file and what comes after it
	file *os.File
	last Progress
}

// openLog begins a new log in place of the last build's.
func openLog(path string) (*buildLog, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &buildLog{path: path, began: time.Now(), file: f}, nil
}

// Write takes a tool's output. That it can't be kept ends no build.
func (l *buildLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(p)
	return len(p), nil
}

// noteStep notes a step, when another one begins or the detail is more than a package's name.
func (l *buildLog) noteStep(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Step == l.last.Step && p.Percent == l.last.Percent {
		return
	}
	l.last = p
	_, _ = fmt.Fprintf(l.file, "[%6.1fs] %3d%% %s: %s\n", time.Since(l.began).Seconds(), p.Percent, p.Step, p.Detail)
}

func (l *buildLog) closeLog() { _ = l.file.Close() }

// LogPath is where the output and the steps of a template's last build are.
func (s *Store) LogPath(name string) string { return filepath.Join(s.dir, "."+name+".log") }
