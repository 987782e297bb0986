package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says of a flag that is not there which one may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usageError(cmd, "%s", err)
	}
	typed := missing.GetSpecifiedName()
	if why := flagElsewhere(cmd, typed); why != "" {
		return usageError(cmd, "%s: %s", err, why)
	}
	if near := nearestFlag(cmd, typed); near != "" {
		return usageError(cmd, "%s; did you mean --%s?", err, near)
	}
	return usageError(cmd, "%s", err)
}

// flagElsewhere is what to do instead of a flag that other programs of this kind have.
func flagElsewhere(cmd *cobra.Command, typed string) string {
	switch strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + " " + typed {
	case "run rm":
		return "the sandbox of a run is removed at its end without it; --keep lets the run go on where this program ends"
	case "run volume", "run v":
		return "--mount HOST:INSIDE[:rw] shows a directory"
	case "run network", "run net":
		return "a sandbox has no network; the policy's network_allowlist names the hosts that it reaches through the gateway"
	case "run it", "run interactive", "run tty", "run i", "run t":
		return "a run has a terminal if this program has one"
	case "run memory", "run m", "run cpus", "run cpu", "create memory", "create m", "create cpus", "create cpu":
		return "the policy says how much a sandbox has, by defaults.max_memory_mb and defaults.max_cpu"
	case "run user", "run u":
		return "the command of a run runs as the sandbox's own user; in a sandbox that stays, exec has --user"
	case "run detach", "run d":
		return "cofferdam create makes a sandbox that stays, and exec --detach starts a command in it"
	case "run name":
		return "--run-id names the run in the record"
	case "run image", "create image":
		return "--template names the root filesystem"
	case "kill all", "rm all":
		return "cofferdam stop --force ends all sandboxes of this host's daemon, and the daemon itself"
	case "project allow yes":
		return "where nobody can be asked, --digest says which settings you have read"
	}
	return ""
}

// nearestFlag is the one flag of a command that may have been meant; "" if none is, or several are.
func nearestFlag(cmd *cobra.Command, typed string) string {
	if len(typed) < 3 {
		return ""
	}
	near, best := "", mostApart(typed)+1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		distance, is := typingApart(f.Name, typed)
		switch {
		case f.Hidden || !is:
		case distance < best:
			near, best = f.Name, distance
		case distance == best:
			near = ""
		}
	})
	return near
}

// mostApart is how many letters may be wrong in a word that was typed: two, or one of a short word, of which
// two are half.
func mostApart(typed string) int {
	if len(typed) < 6 {
		return 1
	}
	return 2
}

// typingApart is how far a name is from what was typed, of which the beginning of a name is one letter away, and two letters are nothing else. A name
// that begins with another letter was not meant, but for two that changed places: import is not export, and unpause
// is not pause.
func typingApart(name, typed string) (distance int, is bool) {
	switch {
	case len(name) < 2 || len(typed) < 2:
		return 0, false
	case strings.HasPrefix(name, typed):
		return 1, true
	case len(typed) < 3, name[0] != typed[0] && (name[0] != typed[1] || name[1] != typed[0]):
		return 0, false
	}
	return lettersApart(name, typed), true
}

// lettersApart is in how many letters, which are bytes, two words differ: one is another, missing or too
// many, or two neighbours have changed places.
func lettersApart(a, b string) int {
	var last, before []int // the rows above
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last, before, row = before, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := before[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, before[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], last[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
