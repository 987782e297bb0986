package executable

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// nowhere is a home directory that has nothing: without any, programs take the one of the user's entry.
const nowhere = "/nonexistent"

// Environment is an environment, as os.Environ has it, for programs of the host, without what a sandbox may
// write, or could: a daemon has the environment of the shell that started it, in which a project's own
// programs may come first. Of variables that list directories to look in (PATH, and those that end so) such
// directories are left out, and those that are not there, since somebody could make them. Every other
// variable is left out that names such a place anywhere in it, as BASH_ENV, PERL5LIB, NODE_OPTIONS and
// SSL_CERT_FILE do: which of them have a program load something, each program knows alone.
func Environment(environment []string, trees []hostpath.Tree) []string {
	if len(trees) == 0 {
		return environment
	}
	lookup := newLookup(trees)
	var all []string
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasSuffix(name, "PATH"):
			all = append(all, name+"="+strings.Join(directoriesOf(value, lookup), string(filepath.ListSeparator)))
		case !namesPlace(value, lookup):
			all = append(all, variable)
		case name == "HOME":
			all = append(all, "HOME="+nowhere)
		}
	}
	if home := valueOf(all, "HOME"); home != "" && isWithin(filepath.Join(home, ".local", "lib"), lookup) {
		all = append(all, "PYTHONNOUSERSITE=1") // modules of the user's that every Python loads
	}
	return all
}

// directoriesOf are those of a list that no sandbox may write.
func directoriesOf(list string, lookup *hostpath.Lookup) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		if !filepath.IsAbs(dir) || isWithin(dir, lookup) {
			return true
		}
		_, err := os.Stat(dir)
		return err != nil
	})
}

// namesPlace tells whether a value names a place that a sandbox may write: it may be one, list some, or
// have one among options.
func namesPlace(value string, lookup *hostpath.Lookup) bool {
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n:;,=\"'|&<>()@", r) })
	for _, word := range append(words, value) {
		at := strings.IndexByte(word, '/')
		if at < 0 {
			continue
		}
		// "-I/dir" has it after the option's letter.
		if filepath.IsAbs(word[at:]) && isWithin(word[at:], lookup) {
			return true
		}
	}
	return false
}

// newLookup is hostpath.NewLookup; nil where nothing can be told.
func newLookup(trees []hostpath.Tree) *hostpath.Lookup {
	lookup, err := hostpath.NewLookup(trees)
	if err != nil {
		return nil
	}
	return lookup
}

// isWithin is lookup.Within; where that can't be told, it is.
func isWithin(path string, lookup *hostpath.Lookup) bool {
	if lookup == nil {
		return true
	}
	_, theirs := lookup.Within(path)
	return theirs
}

func valueOf(environment []string, name string) (value string) {
	for _, variable := range environment {
		if v, is := strings.CutPrefix(variable, name+"="); is {
			value = v
		}
	}
	return value
}

// systemPath are the directories of the host's own programs, root's among them, which no sandbox is ever
// given to write.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// System is the path of a program of the distribution's, whatever PATH says; "" if it is not installed. A name there
// may be a link of a person's that leads anywhere: one that leads to where a sandbox may write, or could, is passed over. writable
// are these directories; nil: there are none.
func System(name string, writable func() []hostpath.Tree) string {
	var lookup *hostpath.Lookup
	for _, dir := range filepath.SplitList(systemPath) {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if writable == nil {
			return path
		}
		if lookup == nil {
			if lookup = newLookup(writable()); lookup == nil {
				return ""
			}
		}
		if _, theirs := lookup.Within(path); !theirs {
			return path
		}
	}
	return ""
}

// SystemEnvironment is what a program of the distribution's has: where others are, and the proxies.
func SystemEnvironment() []string {
	env := []string{"PATH=" + systemPath, "LC_ALL=C.UTF-8", "HOME=" + nowhere}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// LookPath finds a program in the directories of an environment's PATH, and takes none that a sandbox may
// write, or could, or that a link leads to which it could have made; "" if there is none.
func LookPath(name string, environment []string, trees []hostpath.Tree) string {
	lookup := newLookup(trees)
	for _, dir := range directoriesOf(valueOf(environment, "PATH"), lookup) {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil && !isWithin(path, lookup) {
			return path
		}
	}
	return ""
}
