package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/vouched"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxKeys bounds a file of public keys.
const maxKeys = 1 << 20

// maxShown is how much of a file is shown to a person who is asked about it.
const maxShown = 64 << 10

// lockPatience is how long another command may keep this one from the list of files that people vouch for.
const lockPatience = 10 * time.Second

// readDeciding reads a document, as readDocument does, that decides what a run may do, or whom this command believes. One that an
// agent could have written decides only if a person has seen it as it is.
func readDeciding(what, path string, most int64) ([]byte, error) {
	data, err := readDocument(what, path, most)
	if err != nil {
		return nil, err
	}
	return data, checkSeen(what, path, data)
}

// checkSeen refuses what was read if an agent could have written it and no person has seen it. A person at a terminal is asked.
func checkSeen(what, path string, data []byte) error {
	err := checkNoted(what, path, data)
	if unseen, is := errors.AsType[*vouched.UnseenError](err); !is || !ui.CanAsk() || showUnseen(unseen, data) != nil || !ui.Agrees("use it as it is?") {
		return err
	}
	at, err := fromHere(path)
	if err != nil {
		return err
	}
	return vouchForFile(at, data)
}

// checkNoted does what checkSeen does, and asks nobody.
func checkNoted(what, path string, data []byte) error {
	at, err := fromHere(path)
	if err != nil {
		return err
	}
	trees := agentTrees()
	if len(trees) == 0 {
		if stranger, err := hostpath.StrangerOf(at); stranger == nil && err == nil {
			return nil // no agent could ever write there; the daemon notes what it is given
		}
	}
	book, err := vouchedBook()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	return book.Check(ctx, what, at, data, trees)
}

// showUnseen shows what a person is asked about.
func showUnseen(e *vouched.UnseenError, data []byte) error {
	_, err := fmt.Fprintf(os.Stderr, "cofferdam: an agent may have written the %s %s: read this\n\n%s\n", ui.Printable(e.What), ui.PrintableName(e.Path), shownFile(data))
	return err
}

// shownFile is a file for a person: its text, or how to tell it from others.
func shownFile(data []byte) string {
	if len(data) > maxShown {
		return fmt.Sprintf("%d bytes, %s", len(data), vouched.Digest(data))
	}
	return ui.PrintableText(string(data))
}

// vouchForFile notes that a person has seen a file as it is, by its absolute path.
func vouchForFile(at string, data []byte) error {
	book, err := vouchedBook()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	return book.Vouch(ctx, at, data)
}

// vouchedBook has the files that this user vouches for.
func vouchedBook() (*vouched.Book, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return nil, err
	}
	return vouched.Open(paths.Vouched()), nil
}

// publicKeys are those that a person trusts: of a file, or the keys themselves.
func publicKeys(fileOrText string) (checkpoint.Keyring, error) {
	kind, err := kindNamed(fileOrText)
	if err != nil && strings.Contains(fileOrText, "+") {
		return checkpoint.NewKeyring(fileOrText)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint.Keyring{}, fault.New(fault.ErrNotFound, "the file of public keys %s does not exist", fileOrText)
	}
	if err == nil && kind != hostpath.File {
		return checkpoint.Keyring{}, fault.Invalid("the file of public keys %s is not a file", fileOrText)
	}
	text, err := readDeciding("file of public keys", fileOrText, maxKeys)
	if err != nil {
		return checkpoint.Keyring{}, err
	}
	return checkpoint.NewKeyring(string(text))
}

// allowFile has a person say that a file may decide as it is. digest is what they have read, "" where they are to be
// asked.
func allowFile(path, digest string) error {
	at, err := fromHere(path)
	if err != nil {
		return err
	}
	var data []byte // of an ignore file that is gone, which says the same as an empty one
	if _, err := kindNamed(path); !isGoneIgnoreFile(path, err) {
		if data, err = readDocument("file", path, maxAllowed); err != nil {
			return err
		}
	}
	is := vouched.Digest(data)
	switch {
	case digest == is:
		return vouchForFile(filepath.Clean(at), data)
	case digest != "":
		return fault.New(fault.ErrConflict, "%s is not what you have read: its digest is %s now", path, is)
	case !ui.CanAsk():
		return fault.Invalid("nobody can be asked here: read %s, and say cofferdam project allow --digest %s %s", path, is, path)
	}
	if _, err := fmt.Fprintf(os.Stderr, "cofferdam: read this\n\n%s\n", shownFile(data)); err != nil {
		return err
	}
	if !ui.Agrees("may it decide what runs do, as it is?") {
		return nil
	}
	return vouchForFile(filepath.Clean(at), data)
}

// vouchFor notes what a person has read who has allowed a project: its policy and its lockfiles.
func vouchFor(p *project.Project) error {
	if p.Policy != nil {
		if err := vouchForFile(filepath.Clean(p.Inside(p.Settings.Policy)), p.Policy); err != nil {
			return err
		}
	}
	for _, lock := range p.Locks {
		if lock.Data != nil {
			if err := vouchForFile(lock.Path, lock.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxAllowed bounds a file that is allowed: lockfiles are the largest.
const maxAllowed = 64 << 20

// forbidFile takes back that a file was allowed.
func forbidFile(ctx context.Context, path string) error {
	at, err := fromHere(path)
	if err != nil {
		return err
	}
	book, err := vouchedBook()
	if err != nil {
		return err
	}
	known, err := book.Forget(ctx, at)
	if err == nil && !known {
		return fault.New(fault.ErrNotFound, "nobody has allowed %s", path)
	}
	return err
}

// isFile tells whether an argument names a file, and no directory with settings.
func isFile(args []string) bool {
	if len(args) == 0 {
		return false
	}
	kind, err := kindNamed(args[0])
	return err == nil && kind == hostpath.File || isGoneIgnoreFile(args[0], err)
}

// isGoneIgnoreFile tells whether err is that an ignore file is not there: whether it may be gone is asked as well.
func isGoneIgnoreFile(path string, err error) bool {
	return errors.Is(err, fs.ErrNotExist) && filepath.Base(path) == mountpolicy.IgnoreFile
}
