package outside

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// mostName bounds a name in a line; a flag has it whole, if it is there.
const mostName = 300

// Line is one line for a person, whatever the project's files say: without what a terminal takes for an instruction, and
// with flags that a shell reads back as they are meant.
func (p Part) Line() string {
	line := text.Shorten(p.File, mostName) + " leads to " + text.Shorten(p.Path, mostName) + ", outside of " + p.Of + ": " + p.Why
	if len(p.Flags) == 0 {
		return text.Line(line)
	}
	var words []string
	for _, f := range p.Flags {
		word, why := f.shellWord(p)
		if why != "" {
			return text.Line(line + " it, and " + why)
		}
		words = append(words, "--mount "+word)
	}
	line += " " + strings.Join(words, " ")
	if p.Instead {
		line += " --workdir " + ui.Quoted(p.Workdir) + " in place of the mount at " + p.Of
	}
	return text.Line(line)
}

// shellWord is the flag's value as one word of a shell; why tells that there is none.
func (f Flag) shellWord(p Part) (word, why string) {
	value := f.Source + ":" + f.Destination
	if f.ReadWrite {
		value += ":rw"
	}
	_, within := restBelow(f.Destination, p.Of)
	switch {
	case strings.Count(f.Source+f.Destination, ":") > 0, strings.ContainsFunc(value, text.Hostile), strings.ContainsRune(value, '\ufffd'), !validText(value):
		return "", "no flag can say such a name"
	case mountpolicy.IsReserved(f.Destination), f.Destination == "/", within && !p.Instead:
		return "", "nothing can be mounted at " + f.Destination + ", where it is looked for: mount a directory that has both"
	}
	return ui.Quoted(value), ""
}

func validText(s string) bool { return strings.ToValidUTF8(s, "") == s }
