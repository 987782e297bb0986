package clock

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Mark is what time it was at a moment of progress. One that is handed to another
// process of this machine has that one tell the same time.
type Mark struct {
	Boot  string        `json:"boot"`  // the kernel's id of the boot
	Since time.Duration `json:"since"` // of that boot, in nanoseconds
	Time  time.Time     `json:"time"`
	// Wall is what the host's clock said when the mark was kept.
	Wall time.Time `json:"wall"`
}

// bootID is the kernel's.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// Open reads the mark that is kept in a file, or begins one.
func Open(file string, options Options) (*Clock, error) {
	options, err := options.orDefaults()
	if err != nil {
		return nil, err
	}
	c := &Clock{file: file, wall: options.Wall, progress: options.Progress}
	kept, err := readMark(file)
	if err != nil {
		return nil, err
	}
	if kept.Boot == options.Boot {
		c.mark = kept
	} else {
		c.beginBoot(options.Boot, kept)
	}
	return c, c.keepLocked()
}

// Check reads the file of Open, and changes nothing; nil if it is not there yet.
func Check(file string) error {
	_, err := readMark(file)
	return err
}

// From goes on with another process's mark. It must be of this boot.
func From(m Mark) *Clock {
	return &Clock{wall: time.Now, progress: sinceBoot, mark: m}
}

// beginBoot makes the first mark of a boot. Kept is that of the one before, if any: the wall
// must not be before it, and a jump that was open then is open still unless the wall has
// come back from it.
func (c *Clock) beginBoot(boot string, kept Mark) {
	wall, since := c.lookAtClocks()
	c.begun = true
	c.mark = Mark{Boot: boot, Since: since, Time: wall}
	ahead := kept.Wall.Sub(kept.Time) > Tolerance && !wall.Before(kept.Wall.Add(-Tolerance))
	if ahead || wall.Before(kept.Time.Add(-Tolerance)) {
		c.mark.Time = kept.Time
	}
}

// Mark is what time it is, for another process.
func (c *Clock) Mark() Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readLocked()
	return c.mark
}

// Keep writes the mark, so that the next process compares with it.
func (c *Clock) Keep() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keepLocked()
}

// keepLocked keeps the mark, as Keep does; mu is held, or nobody else has the clock yet.
func (c *Clock) keepLocked() error {
	if c.file == "" {
		return nil
	}
	r := c.readLocked()
	m := c.mark
	m.Time, m.Wall = m.Time.Add(c.progress()-m.Since), r.Wall
	m.Since += m.Time.Sub(c.mark.Time)
	text, err := json.Marshal(m)
	if err == nil {
		err = atomicfile.Replace(c.file, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "what time it is can't be kept in %s", c.file)
	}
	return nil
}

// readMark reads a kept mark; a zero one if there is none.
func readMark(file string) (m Mark, err error) {
	if file == "" {
		return m, nil
	}
	text, err := os.ReadFile(filepath.Clean(file))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil && (m.Boot == "" || m.Time.IsZero()) {
		err = errors.New("it is not whole")
	}
	if err != nil {
		return m, fault.Wrap(fault.ErrUnavailable, err, "what time it was can't be read from %s; if the host's clock is right, remove that file", file)
	}
	return m, nil
}
