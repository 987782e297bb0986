package templatebuild

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Bounds of what is uploaded.
const (
	maxUpload   = 512 << 20 // one archive
	uploadsEach = 2 << 30   // of a token, and no more than its quota of disk
	maxTickets  = 128       // of a token
	maxUploads  = 512       // of a token, that are kept
	ticketFor   = time.Hour
	fresh       = time.Hour      // an upload is not removed for another's room until then
	uploadFor   = 24 * time.Hour // after it was last asked for
	reserve     = 1 << 30        // bytes of disk that stay free
)

// uploads are the archives of all tokens, each token's its own: a client names them by
// a hash that nobody can check, so that no other's must be found under it.
type uploads struct {
	dir string

	mu      sync.Mutex // guards what follows; it is not held over the disk
	tickets map[string]ticket
	coming  map[string]int64       // bytes that are being received, by owner
	folders map[string]*sync.Mutex // by owner: whoever holds one looks through the owner's folder
}

type ticket struct {
	owner sandbox.Owner
	hash  string
	ends  time.Time
}

func newUploads(dir string) (*uploads, error) {
	u := &uploads{dir: dir, tickets: map[string]ticket{}, coming: map[string]int64{}, folders: map[string]*sync.Mutex{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the folder of uploads can't be made")
	}
	half, _ := filepath.Glob(filepath.Join(dir, "*", ".new-*")) // the pattern is well formed
	for _, path := range half {
		if err := os.Remove(path); err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "half an upload can't be removed")
		}
	}
	return u, nil
}

func (u *uploads) folder(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return filepath.Join(u.dir, hex.EncodeToString(sum[:16]))
}

// issueTicket hands out a ticket, and tells whether the upload is there already.
func (u *uploads) issueTicket(owner sandbox.Owner, hash string) (present bool, secret string, err error) {
	if !validHash(hash) {
		return false, "", fault.Invalid("%q is no SHA-256 in hexadecimal", text.Shorten(hash, 80))
	}
	now := time.Now()
	path := filepath.Join(u.folder(owner.Token), hash)
	present = os.Chtimes(path, now, now) == nil // it is not removed before the build
	u.mu.Lock()
	defer u.mu.Unlock()
	has := 0
	for secret, t := range u.tickets {
		if now.After(t.ends) {
			delete(u.tickets, secret)
		} else if t.owner.Token == owner.Token {
			has++
		}
	}
	if has >= maxTickets {
		return false, "", fault.Exhausted(time.Minute, "the token has %d uploads that were not sent yet; at most %d", has, maxTickets)
	}
	secret = rand.Text()
	u.tickets[secret] = ticket{owner, hash, now.Add(ticketFor)}
	return present, secret, nil
}

// holder is whose a ticket is, if it counts.
func (u *uploads) holder(secret string) (ticket, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, ok := u.tickets[secret]
	return t, ok && time.Now().Before(t.ends)
}

// receiveUpload takes an upload, whole or not at all. A ticket is used up by that.
func (u *uploads) receiveUpload(secret string, body io.Reader) error {
	t, ok := u.holder(secret)
	if !ok {
		return fault.New(fault.ErrForbidden, "this upload was not asked for, was sent already, or comes too late")
	}
	dir := u.folder(t.owner.Token)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the upload can't be kept")
	}
	file, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the upload can't be kept")
	}
	defer os.Remove(file.Name())
	in := &incoming{uploads: u, owner: t.owner, body: body}
	defer in.endIncoming()
	_, cerr := io.Copy(file, in)
	if err := errors.Join(cerr, file.Close()); err != nil {
		return err
	}
	u.lockFolder(t.owner.Token)
	defer u.unlockFolder(t.owner.Token)
	if err := u.makePlace(t.owner.Token, t.hash); err != nil {
		return err // it may be sent again
	}
	if !u.spendTicket(secret) {
		return fault.New(fault.ErrForbidden, "this upload was sent already")
	}
	if err := os.Rename(file.Name(), filepath.Join(dir, t.hash)); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the upload can't be kept")
	}
	return nil
}

// spendTicket uses a ticket up; false: it is already.
func (u *uploads) spendTicket(secret string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, still := u.tickets[secret]
	delete(u.tickets, secret)
	return still
}

// lockFolder lets nobody else make room in an owner's folder. Others' uploads go on.
func (u *uploads) lockFolder(owner string) {
	u.mu.Lock()
	one := u.folders[owner]
	if one == nil {
		one = &sync.Mutex{}
		u.folders[owner] = one
	}
	u.mu.Unlock()
	one.Lock()
}

func (u *uploads) unlockFolder(owner string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.folders[owner].Unlock()
}

// makePlace makes room for one more upload among those that an owner may keep, unless it is there
// already. The owner's folder is locked.
func (u *uploads) makePlace(owner, hash string) error {
	if _, err := os.Lstat(filepath.Join(u.folder(owner), hash)); err == nil {
		return nil
	}
	kept := u.keptOf(owner)
	for kept.count >= maxUploads && len(kept.old) > 0 {
		if os.Remove(kept.old[0].path) == nil {
			kept.count--
		}
		kept.old = kept.old[1:]
	}
	if kept.count >= maxUploads {
		return fault.Exhausted(time.Minute, "the token has %d uploads, and may have no more; what is not built from goes after an hour", kept.count)
	}
	return nil
}

// incoming is a body that is held to what there is room for.
type incoming struct {
	uploads *uploads
	owner   sandbox.Owner
	body    io.Reader
	size    int64
	granted int64 // of its owner's share
}

// takeAtOnce is how many bytes of room are asked for at one time.
const takeAtOnce = 1 << 20

// Read implements io.Reader.
func (in *incoming) Read(p []byte) (int, error) {
	n, err := in.body.Read(p)
	in.size += int64(n)
	if in.size > maxUpload {
		return 0, fault.New(fault.ErrExhausted, "the upload is larger than %d MiB; copy less, or leave files out with .dockerignore", maxUpload>>20)
	}
	if in.size > in.granted {
		grant := max(int64(n), takeAtOnce)
		in.granted += grant
		if room := in.uploads.takeBytes(in.owner, grant); room != nil {
			return 0, room
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fault.Wrap(fault.ErrInvalid, err, "the upload broke off")
	}
	return n, err
}

func (in *incoming) endIncoming() {
	u := in.uploads
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.coming[in.owner.Token] -= in.granted; u.coming[in.owner.Token] <= 0 {
		delete(u.coming, in.owner.Token)
	}
}

// takeBytes counts bytes that come against their owner's share, making room where there is
// none.
func (u *uploads) takeBytes(owner sandbox.Owner, n int64) error {
	most := int64(uploadsEach)
	if owner.Quota.DiskBytes > 0 {
		most = min(most, owner.Quota.DiskBytes)
	}
	u.lockFolder(owner.Token)
	defer u.unlockFolder(owner.Token)
	coming, kept := u.countBytes(owner.Token, n), u.keptOf(owner.Token)
	for len(kept.old) > 0 && kept.bytes+coming > most {
		if os.Remove(kept.old[0].path) == nil {
			kept.bytes -= kept.old[0].size
		}
		kept.old = kept.old[1:]
	}
	if kept.bytes+coming > most {
		return fault.Exhausted(time.Minute, "the token's uploads would take more than %d MiB; what is not built from goes after an hour", most>>20)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(u.dir, &disk); err != nil || int64(disk.Bavail)*disk.Bsize < reserve {
		return fault.New(fault.ErrUnavailable, "the daemon's disk has no room for uploads")
	}
	return nil
}

// countBytes adds bytes that come, and tells how many of the owner's do.
func (u *uploads) countBytes(owner string, n int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.coming[owner] += n
	return u.coming[owner]
}

// shelf is what lies there of an owner: old are the uploads that may go, the oldest
// first.
type shelf struct {
	count int
	bytes int64
	old   []upload
}

type upload struct {
	path string
	size int64
	used time.Time
}

func (u *uploads) keptOf(owner string) shelf {
	var s shelf
	entries, err := os.ReadDir(u.folder(owner))
	if err != nil {
		return s
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !validHash(e.Name()) {
			continue
		}
		s.count++
		s.bytes += info.Size()
		if time.Since(info.ModTime()) > fresh {
			s.old = append(s.old, upload{filepath.Join(u.folder(owner), e.Name()), info.Size(), info.ModTime()})
		}
	}
	sortUploads(s.old)
	return s
}

// openUpload opens an upload for a build.
func (u *uploads) openUpload(owner, hash string) (*os.File, error) {
	path := filepath.Join(u.folder(owner), hash)
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the open tells
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.ErrNotFound, "the files of this step were not uploaded, or are not kept any more; build again")
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the files of this step can't be read")
	}
	return file, nil
}

// sweepOld removes what nobody has asked for in a day.
func (u *uploads) sweepOld() {
	all, _ := filepath.Glob(filepath.Join(u.dir, "*", "*")) // the pattern is well formed
	for _, path := range all {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > uploadFor {
			_ = os.Remove(path) // the next sweep tries again
		}
	}
}
