package templatebuild

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/debian"
)

// install is what a command begins with that asks apt for packages. There is no apt in a
// sandbox: what it would do the host does, and dpkg inside the rest.
type install struct {
	names      []string
	recommends bool
	sudo       bool // each part of it was asked for as root
}

// readApt takes from the beginning of a command what apt is asked for: parts with && behind
// them, without anything that only a shell knows. rest is the command behind that; of one
// that does not begin so it is all, and found is nil.
func readApt(command string) (found *install, rest string, err error) {
	rest = strings.ReplaceAll(command, "\\\n", " ")
	for {
		part, behind, more := strings.Cut(rest, "&&")
		words, root, ok := aptWords(part)
		if !ok {
			break
		}
		if found == nil {
			found = &install{sudo: true}
		}
		found.sudo = found.sudo && root
		if err := found.readWords(words); err != nil {
			return nil, "", err
		}
		if rest = strings.TrimSpace(behind); !more {
			break
		}
	}
	if found == nil {
		return nil, command, nil
	}
	return found, strings.TrimSpace(rest), nil
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// aptWords are the words of a part that calls apt, from behind its name on.
func aptWords(part string) (words []string, sudo, ok bool) {
	words = strings.Fields(part)
	if len(words) == 0 || strings.ContainsAny(strings.TrimSpace(part), "\n|&;<>()$`\\\"'*?[]{}#~!") {
		return nil, false, false
	}
	for len(words) > 0 {
		switch {
		case words[0] == "sudo":
			sudo = true
		case sudo && (words[0] == "-E" || words[0] == "-n"), assignment.MatchString(words[0]):
		case words[0] == "apt-get" || words[0] == "apt":
			return words[1:], sudo, true
		default:
			return nil, false, false
		}
		words = words[1:]
	}
	return nil, false, false
}

var yesOptions = regexp.MustCompile(`^-[yqm]+$`)

// readWords takes the words behind one call of apt.
func (i *install) readWords(words []string) error {
	what, recommends := "", true
	var names []string
	for _, word := range words {
		switch {
		case word == "--no-install-recommends":
			recommends = false
		case word == "--yes" || word == "--assume-yes" || word == "--quiet" || word == "--fix-missing" || yesOptions.MatchString(word):
		case strings.HasPrefix(word, "-"):
			return fault.Invalid("apt-get: the option %s is not known here: there are --yes, --quiet, --fix-missing and --no-install-recommends", text.Shorten(word, 80))
		case what == "":
			what = word
		default:
			names = append(names, word)
		}
	}
	switch {
	case what == "install":
		return i.addNames(names, recommends)
	case (what == "update" || what == "clean") && len(names) == 0: // the lists are always today's, and nothing is left to clean
		return nil
	}
	return fault.Invalid("apt-get %s is not done in a build: there are update, install NAMES and clean", text.Shorten(strings.Join(words, " "), 80))
}

// addNames takes the names of one install.
func (i *install) addNames(names []string, recommends bool) error {
	for _, name := range names {
		if !debian.ValidName(name) {
			return fault.Invalid("apt-get install: %q is no name of a package, with or without =VERSION", text.Shorten(name, 100))
		}
	}
	i.names, i.recommends = append(i.names, names...), i.recommends || recommends
	if len(i.names) > debian.MaxNames {
		return fault.Invalid("apt-get install: %d packages are named in one step; at most %d", len(i.names), debian.MaxNames)
	}
	return nil
}

var aptCall = regexp.MustCompile(`(^|[\s;&|(])apt(-get)?\s`)

// callsApt tells whether a command that failed may have looked for apt.
func callsApt(command string) bool {
	return aptCall.MatchString(command)
}
