package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// The codes with which a shell says that a command did not start.
const (
	codeNotFound      = 127
	codeNotExecutable = 126
)

// startError is why a command did not start, with a shell's code for it.
type startError struct {
	code     int
	signal   string // that ended it before it began; "": none did
	sentence string
}

// errKilled is why the program of a command is not started that was killed before.
var errKilled = errors.New("the command was killed")

func (e *startError) Error() string { return e.sentence }

func notExecutable(format string, args ...any) *startError {
	return &startError{code: codeNotExecutable, sentence: fmt.Sprintf(format, args...)}
}

// workingDirectory gives dir without symbolic links, as the user may reach it; the
// kernel checks again. A way through the process table is refused: in the moment
// between fork and exec its links lead to the agent's own descriptors.
func workingDirectory(user channel.User, dir string) (string, *startError) {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return "", notExecutable("the working directory %.200q is not an absolute path", dir)
	}
	if plainly(user, dir) {
		return dir, nil
	}
	found := ""
	err := actAs(user, func() error {
		p, err := locate("", dir, search{follow: true})
		if err != nil {
			return err
		}
		defer p.closePlace()
		stat, err := p.statPlace()
		switch {
		case err != nil:
			return err
		case stat.Mode&unix.S_IFMT != unix.S_IFDIR:
			return unix.ENOTDIR
		case stat.Dev == procDevice():
			return errProc()
		}
		found = p.real
		return nil
	})
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, unix.ENOENT):
		return "", notExecutable("the working directory %.200q does not exist in the sandbox", dir)
	case errors.Is(err, unix.ENOTDIR):
		return "", notExecutable("the working directory %.200q is not a directory", dir)
	case errors.Is(err, unix.EACCES):
		return "", notExecutable("permission denied: the user may not enter the working directory %.200q", dir)
	default:
		return "", notExecutable("the working directory %.200q can't be used: %v", dir, err)
	}
}

// plainly tells whether dir needs no closer look, which costs as much as a small
// program does: the user's own directory, on a way of directories that all may
// pass through and only root may change.
func plainly(user channel.User, dir string) bool {
	if filepath.Clean(dir) != dir || dir == "/" {
		return false
	}
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		var on unix.Stat_t
		if unix.Lstat(at, &on) != nil || on.Mode&unix.S_IFMT != unix.S_IFDIR || on.Uid != 0 || on.Mode&0o022 != 0 || on.Mode&0o001 == 0 {
			return false
		}
		if at == "/" {
			break
		}
	}
	var own unix.Stat_t
	return unix.Lstat(dir, &own) == nil && own.Mode&unix.S_IFMT == unix.S_IFDIR && int(own.Uid) == user.UID && own.Mode&0o500 == 0o500 &&
		uint64(own.Dev) != procDevice() //nolint:unconvert // another width elsewhere
}

// candidates lists the files that name may mean, as a shell would look for
// them: name itself if it has a slash, else in each directory of path. Files
// without any execute permission are left out; denied tells that there was one.
func candidates(name, path, dir string) (files []string, denied bool) {
	if strings.Contains(name, "/") {
		return []string{name}, false
	}
	for _, place := range filepath.SplitList(path) {
		if place == "" {
			place = "."
		}
		file := place + "/" + name
		look := file
		if !filepath.IsAbs(look) {
			look = filepath.Join(dir, file)
		}
		info, err := os.Stat(look)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 == 0 {
			denied = true
			continue
		}
		files = append(files, file)
	}
	return files, denied
}

// launch tries each candidate with try, which starts one file, until one
// starts. dir must have passed workingDirectory.
func launch(name, path, dir string, try func(file string) error) *startError {
	if name == "" {
		return &startError{code: codeNotFound, sentence: "the command's name is empty"}
	}
	files, denied := candidates(name, path, dir)
	for _, file := range files {
		err := try(file)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errKilled):
			return &startError{code: 128 + int(unix.SIGKILL), signal: "KILL", sentence: "it was killed before it had started"}
		}
		if errors.Is(err, unix.EACCES) && !strings.Contains(name, "/") {
			denied = true
			continue
		}
		return explainStart(name, file, dir, err)
	}
	if denied {
		return notExecutable("%.200q was found in the sandbox but may not be run: permission denied", name)
	}
	return &startError{code: codeNotFound, sentence: fmt.Sprintf("the command %.200q is not in the sandbox (PATH is %.400s)", name, path)}
}

// explainStart makes one sentence of the kernel's refusal to run file.
func explainStart(name, file, dir string, err error) *startError {
	look := file
	if !filepath.IsAbs(look) {
		look = filepath.Join(dir, file)
	}
	info, statErr := os.Stat(look)
	switch {
	case errors.Is(statErr, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return &startError{code: codeNotFound, sentence: fmt.Sprintf("the command %.200q is not in the sandbox", name)}
	case statErr == nil && info.IsDir():
		return notExecutable("%.200q is a directory", name)
	case errors.Is(err, unix.ENOENT):
		return notExecutable("%.200q can't be run: the interpreter or loader that it names is not in the sandbox", name)
	case errors.Is(err, unix.EACCES):
		return notExecutable("permission denied: the user may not run %.200q or not enter %.200q", name, dir)
	case errors.Is(err, unix.ENOEXEC):
		return notExecutable("%.200q is not a program for this machine, and a script needs a first line like #!/bin/sh", name)
	case errors.Is(err, unix.E2BIG):
		return notExecutable("the arguments and environment of %.200q are too long for the kernel", name)
	case errors.Is(err, unix.EAGAIN):
		return notExecutable("%.200q could not be started: the sandbox is at its limit of processes", name)
	case errors.Is(err, unix.EINVAL):
		return notExecutable("%.200q could not be started: an argument has a zero byte or the file is not a program", name)
	default:
		return notExecutable("%.200q could not be started: %v", name, err)
	}
}
