package audit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// nextKey is added to the key's file name while a rotation is on its way.
const nextKey = ".next"

// openKey reads the private key, or makes it where the log has never had one, and
// the public keys.
func (l *FileLog) openKey(signed bool) error {
	f := &l.follower
	path := l.options.KeyFile
	key, err := checkpoint.ReadKey(path)
	if errors.Is(err, os.ErrNotExist) {
		if signed {
			return missingKey(path, l.dir)
		}
		key, err = l.makeKey(path, "")
	}
	if err != nil {
		return err
	}
	f.key = key
	f.keys, err = readPublicKeys(l.dir)
	if err != nil {
		return err
	}
	if !slices.Contains(f.keys, key.Public()) {
		f.keys = append(f.keys, key.Public())
	}
	return l.writeKeys()
}

func missingKey(path, dir string) error {
	return fault.New(fault.ErrUnavailable, "the audit log's key %s is missing, and its checkpoints are signed; put it back, or move the log's directory %s away to begin a new log", path, dir)
}

// CheckKey says what Open would refuse of a log's key, and changes nothing.
func CheckKey(dir, keyFile string) error {
	_, err := checkpoint.ReadKey(keyFile)
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(filepath.Join(dir, checkpointsName)); err == nil && info.Size() > 0 {
		return missingKey(keyFile, dir)
	}
	return nil
}

// makeKey generates a key and writes its file, durably, with mode 0600.
func (l *FileLog) makeKey(path, name string) (checkpoint.Key, error) {
	key, err := checkpoint.Generate(name)
	if err == nil {
		err = replace(l.options.disk, path, func(w io.Writer) error {
			_, err := w.Write(key.Secret())
			return err
		})
	}
	if err != nil {
		return checkpoint.Key{}, fault.Wrap(fault.ErrUnavailable, err, "the audit log's key %s can't be made", path)
	}
	return key, nil
}

// readPublicKeys reads keys.pub; none if it is not there.
func readPublicKeys(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, PublicKeysName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log's public keys can't be read")
	}
	ring, err := checkpoint.NewKeyring(string(text))
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the audit log's file %s is damaged; put it back from a copy", filepath.Join(dir, PublicKeysName))
	}
	return ring.Keys(), nil
}

// PublicKeys are the keys that have signed this log's checkpoints, oldest first;
// the last one signs now.
func (l *FileLog) PublicKeys() []string {
	l.follower.mu.Lock()
	defer l.follower.mu.Unlock()
	return slices.Clone(l.follower.keys)
}

// RotateKey replaces the private key. Both keys sign a checkpoint that names both,
// so that who trusts one can trust the other; a record by this person, for this
// reason, follows. The old private key is gone afterwards. A crash on the way
// leaves either key in force, and the next Open finishes what was begun.
func (l *FileLog) RotateKey(by, reason string) (public string, err error) {
	if err := l.rotate(); err != nil {
		return "", err
	}
	keys := l.PublicKeys()
	r := rotated(keys[len(keys)-2], keys[len(keys)-1])
	r.User = by
	if reason != "" {
		r.Detail["note"] = reason
	}
	q, err := newRequest(r, nil)
	if err == nil {
		err = l.enqueue(q)
	}
	if err != nil {
		return "", err
	}
	<-q.done
	return keys[len(keys)-1], q.result
}

func rotated(oldKey, newKey string) Record {
	return Record{
		Kind: KindLog, Outcome: Rotated,
		Reason: "The log's key was replaced; a checkpoint that both keys signed says so.",
		Detail: map[string]string{"event": "key_rotated", "old_key": oldKey, "new_key": newKey},
	}
}

func (l *FileLog) rotate() error {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := l.catchUp(); err != nil {
		return treeFault(err)
	}
	if err := l.installLate(); err != nil {
		return err
	}
	next, err := l.makeKey(l.options.KeyFile+nextKey, f.key.Name())
	if err != nil {
		return err
	}
	both := checkpoint.Checkpoint{OldKey: f.key.Public(), NewKey: next.Public()}
	if err := l.signCheckpoint(both, f.key, next); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the key was not replaced")
	}
	f.next = &next
	return l.installKey(next)
}

// installLate puts a new key in its place that could not be put there before.
// Nothing is signed until it is there: the next start would not have the key. The
// caller holds the follower's lock.
func (l *FileLog) installLate() error {
	f := &l.follower
	if f.next == nil {
		return nil
	}
	if err := l.installKey(*f.next); err != nil {
		return err
	}
	q, err := newRequest(rotated(f.last.OldKey, f.last.NewKey), nil)
	if err == nil {
		err = l.enqueue(q)
	}
	if errors.Is(err, fault.ErrUnavailable) { // the log is being closed; the checkpoint says it
		return nil
	}
	return err
}

// installKey makes a key that a rotation has vouched for the log's key.
func (l *FileLog) installKey(next checkpoint.Key) error {
	f := &l.follower
	f.key = next
	f.keys = append(slices.DeleteFunc(f.keys, func(k string) bool { return k == next.Public() }), next.Public())
	if err := l.writeKeys(); err != nil {
		return err
	}
	path := l.options.KeyFile
	err := uninterrupted(func() error { return l.options.disk.rename(path+nextKey, path) })
	if err == nil {
		err = uninterrupted(func() error { return l.options.disk.syncDir(filepath.Dir(path)) })
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the new key can't be put in the old one's place yet; it is tried again, and no log checkpoint is signed before")
	}
	f.next = nil
	return nil
}

// finishRotation does what a crash left undone of a rotation: if the last
// checkpoint names the next key, it is installed; else that key was never used.
func (l *FileLog) finishRotation() error {
	f := &l.follower
	path := l.options.KeyFile + nextKey
	if f.last.NewKey == "" {
		if err := l.options.disk.removeFile(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.Wrap(fault.ErrUnavailable, err, "the key of an unfinished rotation, %s, can't be removed", path)
		}
		return nil
	}
	next, err := checkpoint.ReadKey(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case next.Public() == f.last.NewKey:
		if err := l.installKey(next); err != nil {
			return err
		}
	}
	if f.key.Public() != f.last.NewKey {
		return fault.Invalid("the audit log's key %s is not the one that its last checkpoint was handed over to; put the right key back", l.options.KeyFile)
	}
	if uint64(f.last.Size) == l.next { // no record after it: the crash came before
		return l.writer.oweRecord(rotated(f.last.OldKey, f.last.NewKey))
	}
	return nil
}

// ReadPublicKeys reads the text of public keys for a Keyring: from a file if there
// is one of this name, or the keys themselves.
func ReadPublicKeys(fileOrText string) (checkpoint.Keyring, error) {
	text, err := os.ReadFile(fileOrText)
	if err != nil {
		if !strings.Contains(fileOrText, "+") {
			return checkpoint.Keyring{}, fault.Wrap(fault.ErrNotFound, err, "the file of public keys %s does not exist", fileOrText)
		}
		text = []byte(fileOrText)
	}
	return checkpoint.NewKeyring(string(text))
}
