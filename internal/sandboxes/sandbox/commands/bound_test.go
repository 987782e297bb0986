package commands

import (
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestACommandThatIsTakenCanBeTold: whatever a command is long of, and however it is written in JSON,
// the longest that is taken fits the message by which the sandbox's agent is told of it, and one that
// is longer is refused by a sentence with the bound. The control: something is taken, and something is
// refused, of each.
func TestACommandThatIsTakenCanBeTold(t *testing.T) {
	long := map[string]func(text string) Command{
		"word": func(text string) Command { return Command{Argv: []string{"x", text}} },
		"words": func(text string) Command {
			return Command{Argv: append([]string{"x"}, strings.Split(text, "")...)}
		},
		"variable": func(text string) Command { return Command{Argv: []string{"x"}, Env: map[string]string{"V": text}} },
		"both": func(text string) Command {
			return Command{Argv: []string{"x", text}, Env: map[string]string{"V": text}, Dir: "/" + text[:min(len(text), MaxDir-1)]}
		},
		"user": func(text string) Command { return Command{Argv: []string{"x"}, User: text} },
	}
	for what, command := range long {
		for name, unit := range map[string]string{"letters": "x", "controls": "\x01", "markup": "<"} {
			refused := func(n int) error { return checkCommand(command(strings.Repeat(unit, n))) }
			most := sort.Search(1<<18, func(n int) bool { return refused(n+1) != nil })
			if most == 0 || most == 1<<18 {
				t.Errorf("%s of %s: taken up to %d", what, name, most)
				continue
			}
			c := command(strings.Repeat(unit, most))
			exec := channel.Exec{ID: strings.Repeat("x", 128), Argv: c.Argv, Env: c.Env, Dir: c.Dir, User: c.User, PTY: &channel.WindowSize{Rows: math.MaxUint16, Cols: math.MaxUint16}, Stdin: true, Timeout: math.MaxInt64, Grace: math.MaxInt64}
			if err := channel.NewWriter(io.Discard).WriteJSON(channel.FrameOpen, channel.Call{Kind: channel.CallExec, Exec: &exec}); err != nil {
				t.Errorf("%s of %s: %d are taken, and can't be told: %v", what, name, most, err)
			}
			says := refused(most + 1).Error()
			if !strings.Contains(says, strconv.Itoa(MaxCommand)) && !strings.Contains(says, strconv.Itoa(MaxEnv)) {
				t.Errorf("%s of %s: one more is refused with %q", what, name, says)
			}
		}
	}
}
