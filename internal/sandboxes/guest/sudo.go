package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// SudoName is the name under which the agent's program is the sandbox's sudo.
const SudoName = "sudo"

// sudoNothing is what it says of itself.
const sudoNothing = "In this sandbox sudo asks for no password and gives nothing: a command runs as who asked. Commands of root's are started from outside, as the user root.\n"

// Sudo runs a command as sudo is asked to, with the rights that the caller has: it is
// no setuid program, asks nobody, and changes no id. Scripts that begin their commands
// with sudo out of habit work as far as the user's own rights go. It returns only if
// there is nothing to run.
func Sudo(args []string, stdout, stderr io.Writer) int {
	asked, err := parseSudo(args)
	if err == nil {
		err = asked.mayRun(os.Getuid())
	}
	if err != nil {
		fmt.Fprintln(stderr, "sudo:", err)
		return 1
	}
	argv := asked.commandArgv()
	switch {
	case asked.tells:
		fmt.Fprint(stdout, sudoNothing)
		return 0
	case len(argv) == 0:
		return 0 // -v and -k: there is no password to remember
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		fmt.Fprintf(stderr, "sudo: %s: command not found\n", argv[0])
		return codeNotFound
	}
	if asked.dir != "" {
		if err := os.Chdir(asked.dir); err != nil {
			fmt.Fprintln(stderr, "sudo:", err)
			return 1
		}
	}
	if err := unix.Exec(program, argv, slices.Concat(os.Environ(), asked.env)); err != nil {
		fmt.Fprintf(stderr, "sudo: %s: %v\n", program, err)
	}
	return codeNotExecutable
}

// sudoRequest is what a command line asks of sudo.
type sudoRequest struct {
	user    string // "": root
	dir     string
	shell   bool // -s
	login   bool // -i
	tells   bool // -V, -h, -l: it says what it is
	env     []string
	command []string
}

// The options of sudo that take a value, and those that do not.
const (
	sudoValued = "CDRTUghpu"
	sudoPlain  = "ABEHKNPSbeiklnsVv"
)

// parseSudo reads a command line as sudo does: options, assignments, a command.
func parseSudo(args []string) (sudoRequest, error) {
	var asked sudoRequest
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		used, err := asked.option(arg, args)
		if err != nil {
			return asked, err
		}
		args = args[used:]
	}
	for len(args) > 0 && isAssignment(args[0]) {
		asked.env = append(asked.env, args[0])
		args = args[1:]
	}
	asked.command = args
	return asked, nil
}

// option takes one argument with options, and tells how many of the next it used.
func (s *sudoRequest) option(arg string, next []string) (used int, err error) {
	if long, ok := strings.CutPrefix(arg, "--"); ok {
		return s.takeLong(long, next)
	}
	for i, letter := range arg[1:] {
		valued := strings.ContainsRune(sudoValued, letter) && (letter != 'h' || len(arg) > 2 || len(next) > 1)
		if !valued {
			if err := s.takeLetter(letter); err != nil {
				return 0, err
			}
			continue
		}
		value := arg[1+i+1:]
		if value == "" {
			if len(next) == 0 {
				return 0, fmt.Errorf("option -%c needs a value", letter)
			}
			value, used = next[0], 1
		}
		s.takeValue(letter, value)
		return used, nil
	}
	return 0, nil
}

func (s *sudoRequest) takeLetter(letter rune) error {
	switch letter {
	case 's':
		s.shell = true
	case 'i':
		s.login = true
	case 'V', 'l', 'h':
		s.tells = true
	case 'e', 'b':
		return fmt.Errorf("option -%c is not there in this sandbox", letter)
	default:
		if !strings.ContainsRune(sudoPlain, letter) {
			return fmt.Errorf("there is no option -%c", letter)
		}
	}
	return nil
}

func (s *sudoRequest) takeValue(letter rune, value string) {
	switch letter {
	case 'u':
		s.user = value
	case 'D':
		s.dir = value
	}
}

// takeLong takes --name, --name=value and --name value.
func (s *sudoRequest) takeLong(arg string, next []string) (used int, err error) {
	name, value, given := strings.Cut(arg, "=")
	letters := map[string]rune{
		"user": 'u', "group": 'g', "chdir": 'D', "host": 'h', "prompt": 'p', "close-from": 'C', "command-timeout": 'T', "other-user": 'U',
		"shell": 's', "login": 'i', "version": 'V', "help": 'V', "list": 'l', "non-interactive": 'n', "preserve-env": 'E', "set-home": 'H',
		"stdin": 'S', "reset-timestamp": 'k', "remove-timestamp": 'K', "validate": 'v', "askpass": 'A', "preserve-groups": 'P', "background": 'b', "edit": 'e',
	}
	letter, ok := letters[name]
	switch {
	case !ok:
		return 0, fmt.Errorf("there is no option --%s", name)
	case !strings.ContainsRune(sudoValued, letter):
		return 0, s.takeLetter(letter)
	case !given && len(next) == 0:
		return 0, fmt.Errorf("option --%s needs a value", name)
	case !given:
		value, used = next[0], 1
	}
	s.takeValue(letter, value)
	return used, nil
}

func isAssignment(arg string) bool {
	name, _, ok := strings.Cut(arg, "=")
	return ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// mayRun refuses to run as somebody who is neither root, which scripts ask for and
// nobody becomes, nor the caller.
func (s *sudoRequest) mayRun(uid int) error {
	if s.user == "" || s.user == "root" || s.user == "#0" || s.user == fmt.Sprintf("#%d", uid) {
		return nil
	}
	if u, err := user.LookupId(fmt.Sprint(uid)); err == nil && u.Username == s.user {
		return nil
	}
	return errors.New("a command can't run as " + s.user + " here: sudo gives nothing in this sandbox")
}

// commandArgv is what is run; nothing: nothing is asked for.
func (s *sudoRequest) commandArgv() []string {
	if !s.shell && !s.login {
		return s.command
	}
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	argv := []string{shell}
	if s.login {
		argv = append(argv, "-l")
	}
	if len(s.command) > 0 {
		argv = append(argv, "-c", strings.Join(s.command, " "))
	}
	return argv
}
