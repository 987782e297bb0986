package templatebuild

import (
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Recipe is what is built: a base, steps, a start and a ready command.
type Recipe struct {
	Base  string // as the client calls it
	Steps []Step
	Start string
	Ready string
}

// Step is one of a recipe's.
type Step struct {
	Type string   // one of the kinds
	Args []string // what they mean is the kind's
	Hash string   // of a copy's upload
}

// The kinds of steps.
const (
	kindRun     = "RUN"     // a command, and a user if it is not the current one
	kindCopy    = "COPY"    // a source in the upload, a destination, an owner and a mode, which may be ""
	kindEnv     = "ENV"     // names and values in turn
	kindWorkdir = "WORKDIR" // a directory, made if it is not there
	kindUser    = "USER"    // who runs what follows
)

// setting is what holds for a step and for the sandboxes made of the result.
type setting struct {
	user    string // "" or "root"
	workdir string
	env     map[string]string
}

// task is a step that was understood: with the setting in which it is done.
type task struct {
	kind    string
	number  string // of the step
	title   string
	hash    string
	setting setting
	command string   // of a run
	install *install // of a run that begins with apt; nil: it does not
	copy    copying
}

// copying is a copy's.
type copying struct {
	source  string // in the archive; "." is all of it
	pattern bool   // what matches below source, and not source itself
	dest    string // from the root; with "/" at its end it is a directory
	user    string // whose the files are to be, as in setting
	mode    string
}

// stepError is why a step can't be done.
type stepError struct {
	step string
	err  error
}

// Error implements error.
func (e *stepError) Error() string { return e.err.Error() }

// Unwrap is the fault.
func (e *stepError) Unwrap() error { return e.err }

// checkRecipe understands a recipe for an account, whole, before anything is done. The values of
// the variables that its steps name are not known then.
func (r Recipe) checkRecipe(account sandbox.Account, workdir string) error {
	now := firstSetting(account, workdir)
	if len(r.Steps) > maxSteps {
		return &stepError{StepBase, fault.Invalid("the template has %d steps; at most %d", len(r.Steps), maxSteps)}
	}
	if err := checkText(r.Start, r.Ready); err != nil {
		return &stepError{StepFinalize, err}
	}
	for i, s := range r.Steps {
		if _, err := now.makeTask(i, s, account); err != nil {
			return err
		}
	}
	return nil
}

// firstSetting is the one before the first step.
func firstSetting(account sandbox.Account, workdir string) setting {
	return setting{user: account.Default, workdir: workdir, env: map[string]string{}}
}

// makeTask makes a task of one step, which changes the setting.
func (now *setting) makeTask(i int, s Step, account sandbox.Account) (task, error) {
	t := task{kind: s.Type, number: stepNumber(i), hash: s.Hash, title: titleOf(s)}
	err := checkText(s.Args...)
	if err == nil {
		err = now.applyStep(s, &t, account)
	}
	if err != nil {
		return t, &stepError{t.number, err}
	}
	t.setting.env = maps.Clone(now.env)
	return t, nil
}

// stepNumber is a step's in messages.
func stepNumber(i int) string { return strconv.Itoa(i + 1) }

func titleOf(s Step) string { return text.Shorten(s.Type+" "+strings.Join(s.Args, " "), 300) }

func checkText(texts ...string) error {
	for _, text := range texts {
		if len(text) > maxText || strings.ContainsRune(text, 0) {
			return fault.Invalid("an argument of %d bytes, or with zero bytes; at most %d and none", len(text), maxText)
		}
	}
	return nil
}

// applyStep changes the setting as a step does, and says in t what is to be done.
func (now *setting) applyStep(s Step, t *task, account sandbox.Account) (err error) {
	arg := func(n int) string {
		if n < len(s.Args) {
			return s.Args[n]
		}
		return ""
	}
	t.setting = setting{user: now.user, workdir: now.workdir}
	switch s.Type {
	case kindRun:
		if t.command = arg(0); strings.TrimSpace(t.command) == "" {
			return fault.Invalid("a RUN step without a command")
		}
		if arg(1) != "" {
			if t.setting.user, err = userOf(arg(1), account); err != nil { // clients look for the words
				return fault.Invalid("failed to run command '%s': command failed: unauthenticated: invalid username: '%s': %v", text.Shorten(t.command, 80), text.Shorten(arg(1), 40), err)
			}
		}
		if isInstall(t.command) {
			t.setting.user = ""
		}
		t.command = ownInstall(t.command)
		if err == nil {
			err = t.readInstall()
		}
		return err
	case kindCopy:
		return t.readCopy(arg(0), arg(1), arg(2), arg(3), now, account)
	case kindEnv:
		return now.setEnv(s.Args)
	case kindWorkdir:
		if arg(0) == "" {
			return fault.Invalid("a WORKDIR step without a directory")
		}
		now.workdir = absolute(arg(0), now.workdir)
		t.setting.workdir = now.workdir
	case kindUser:
		now.user, err = userOf(arg(0), account)
	default:
		return fault.Invalid("there is no step %q: there are RUN, COPY, ENV, WORKDIR and USER", text.Shorten(s.Type, 40))
	}
	return err
}

var installForAll = regexp.MustCompile(`^(pip install|(npm|bun) install -g)( [^;&|()\x60$\n]*)?$`)

// isInstall recognises what the SDKs write for an install for all, which root does: the
// places that are for all here are the sandbox's own user's, and root, who has no
// capabilities, may not write there.
func isInstall(command string) bool {
	return installForAll.MatchString(command)
}

var installForUser = regexp.MustCompile(`^pip install --user(( [^;&|()\x60$\n]*)?)$`)

// ownInstall is what the SDKs write for an install for the user alone as it can be done
// here: the virtual environment is the user's own, and pip installs nowhere else from it.
func ownInstall(command string) string {
	return installForUser.ReplaceAllString(command, "pip install$1")
}

// readInstall takes what a run asks apt for out of its command.
func (t *task) readInstall() (err error) {
	if t.install, t.command, err = readApt(t.command); err != nil || t.install == nil {
		return err
	}
	if t.setting.user != "root" && !t.install.sudo {
		return fault.Invalid("apt-get: only root installs packages; do the step as root, or put sudo before it")
	}
	return nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (now *setting) setEnv(args []string) error {
	if len(args) == 0 || len(args)%2 != 0 {
		return fault.Invalid("an ENV step has names and values in turn")
	}
	for i := 0; i < len(args); i += 2 {
		if !variableName.MatchString(args[i]) {
			return fault.Invalid("%q can't be the name of a variable", text.Shorten(args[i], 80))
		}
		if now.env[args[i]] = args[i+1]; len(now.env) > mostVariables {
			return fault.Invalid("the template's steps set more than %d variables", mostVariables)
		}
	}
	return nil
}

// userOf is who a step names.
func userOf(name string, account sandbox.Account) (string, error) {
	own := account.Name
	if own == "" {
		own = "user"
	}
	switch name {
	case own:
		return "", nil
	case "root":
		return "root", nil
	}
	return "", fault.Invalid("there is no user %q: there are %s and root, and a build makes no others", text.Shorten(name, 40), own)
}

func absolute(dir, workdir string) string {
	if path.IsAbs(dir) {
		return path.Clean(dir)
	}
	return path.Join(workdir, dir)
}

var octalMode = regexp.MustCompile(`^[0-7]{3,5}$`)

// readCopy understands a copy's arguments.
func (t *task) readCopy(source, dest, owner, mode string, now *setting, account sandbox.Account) error {
	switch {
	case source == "" || dest == "":
		return fault.Invalid("a COPY step has a source and a destination")
	case !validHash(t.hash):
		return fault.Invalid("a COPY step names its files by a SHA-256 in hexadecimal, and not by %q", text.Shorten(t.hash, 80))
	case mode != "" && !octalMode.MatchString(mode):
		return fault.Invalid("%q is no mode in octal", text.Shorten(mode, 40))
	}
	c := copying{source: path.Clean(source), dest: absolute(dest, now.workdir), user: now.user, mode: mode}
	if path.IsAbs(c.source) || c.source == ".." || strings.HasPrefix(c.source, "../") {
		return fault.Invalid("the source %q is not in the template's directory", text.Shorten(source, 200))
	}
	if at := strings.IndexAny(c.source, "*?[{!"); at >= 0 {
		c.source, c.pattern = path.Dir(c.source[:at]+"x"), true
	}
	if strings.HasSuffix(dest, "/") && c.dest != "/" {
		c.dest += "/"
	}
	if owner != "" {
		name, _, _ := strings.Cut(owner, ":") // a group is its user's here
		var err error
		if c.user, err = userOf(name, account); err != nil {
			return err
		}
	}
	t.copy = c
	return nil
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

func validHash(hash string) bool { return sha256Hex.MatchString(hash) }
