package e2b

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// launch is what a client said about a command that only clients want back. A
// restart of the daemon loses it: tags are gone then, and the list shows argv.
type launch struct {
	config   processConfig
	tag      string
	stdin    bool
	terminal bool
	at       time.Time // when it was remembered
	known    bool      // false: it was made up of what the keeper has
}

// launches are those of all sandboxes.
type launches struct {
	mu    sync.Mutex // guards what follows
	boxes map[string]map[string]launch
}

const manyLaunches = 256 // of one sandbox; with more, those of forgotten commands are looked for

// maxLaunch is how many bytes a command and its environment may take in memory that are kept for the list.
const maxLaunch = 32 << 10

// briefLaunch is the launch, of a very long command with no more than its program. Nothing of the message that
// brought it is kept with it.
func (l launch) briefLaunch() launch {
	if backend.SizeOf(l.config) > maxLaunch {
		cmd := strings.Clone(text.Shorten(l.config.Cmd, maxLaunch))
		l.config = processConfig{Cmd: cmd, Args: []string{}, Envs: map[string]string{}}
	}
	l.config.Args = slices.Clip(l.config.Args)
	return l
}

// rememberLaunch keeps a launch.
func (d *Data) rememberLaunch(c *call, command string, what launch) {
	what.known = true
	if d.launched.putLaunch(c.id, command, what) > manyLaunches {
		_, _ = d.commands(c) // forgets as it lists; what fails here is tried again with the next command
	}
	d.launched.mu.Lock()
	defer d.launched.mu.Unlock()
	for id := range d.launched.boxes {
		if _, err := backend.Find(d.cfg.Sandboxes, id, backend.AnyOwnersViewer); err != nil {
			delete(d.launched.boxes, id)
		}
	}
}

// putLaunch returns how many the sandbox has then.
func (l *launches) putLaunch(id, command string, what launch) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.boxes == nil {
		l.boxes = map[string]map[string]launch{}
	}
	if l.boxes[id] == nil {
		l.boxes[id] = map[string]launch{}
	}
	l.boxes[id][command] = what
	return len(l.boxes[id])
}

// launchOf is a command's launch, made up of what the keeper has where nobody remembers.
func (l *launches) launchOf(id string, k keeper.Command) launch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if what, ok := l.boxes[id][k.ID]; ok {
		return what
	}
	what := launch{terminal: k.Terminal, stdin: true, config: processConfig{Args: []string{}, Envs: map[string]string{}}}
	if len(k.Argv) > 0 {
		what.config.Cmd, what.config.Args = k.Argv[0], k.Argv[1:]
	}
	return what
}

// commands asks for a sandbox's commands, and forgets the launches of those that
// the keeper has forgotten.
func (d *Data) commands(c *call) ([]keeper.Command, error) {
	asked := time.Now()
	commands, err := d.cfg.Sandboxes.Commands(c.Context(), c.id)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, k := range commands {
		known[k.ID] = true
	}
	d.launched.mu.Lock()
	defer d.launched.mu.Unlock()
	for id, what := range d.launched.boxes[c.id] {
		if !known[id] && what.at.Before(asked) {
			delete(d.launched.boxes[c.id], id)
		}
	}
	return commands, nil
}
