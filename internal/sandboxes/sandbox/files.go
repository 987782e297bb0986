package sandbox

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/outputscan"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/transfers"
)

// answerTimeout is how long a guest may take for the reply to a call, of time in
// which its sandbox runs.
const answerTimeout = 2 * time.Minute

// inside does what clients ask for in sandboxes beside commands.
type inside struct {
	cfg        *Config
	registry   *registry
	background *background
	outgoing   *outputscan.Scanner
}

// File does an operation on the sandbox's files that is one reply: stat, mkdir,
// move or remove. Its result is the guest's claim. The last three are on record before
// they are done. Errors are channel.Reply.Err's, and a fault.ErrConflict for a sandbox that does
// not run.
func (n *inside) File(ctx context.Context, id string, f channel.File) (channel.FileInfo, error) {
	switch f.Op {
	case channel.FileStat, channel.FileMkdir, channel.FileMove, channel.FileRemove:
	case channel.FileList, channel.FileRead, channel.FileWrite, channel.FileWatch:
		return channel.FileInfo{}, fault.Invalid("the file operation %q needs a stream", f.Op)
	default:
		return channel.FileInfo{}, fault.Invalid("there is no file operation %.40q", f.Op)
	}
	s, err := n.runningSandbox(id)
	if err != nil {
		return channel.FileInfo{}, err
	}
	defer s.clients.Use()()
	f.User = s.info.Account.User(f.User)
	s.inventory.AsRoot(f.User)
	if err := CheckFile(f); err != nil {
		return channel.FileInfo{}, err
	}
	t, err := transfers.Begin(ctx, n.cfg.Door, n.cfg.Log, id, f)
	if err != nil {
		return channel.FileInfo{}, err
	}
	ctx, cancel := s.waits.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply, err := n.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallFile, File: &f})
	err = refusedError(ctx, reply, err)
	t.Answered(err)
	if err != nil {
		return channel.FileInfo{}, err
	}
	return reply.FileInfo()
}

// OpenFile begins one of the other operations, a read and a write once that is on record. The stream comes after its first
// reply, whose FileInfo (of a list, a read and a watch) comes with it; ctx bounds
// only that. channel.ReadList, NewFileReader, WriteFile and DecodeEvents do the
// rest. The caller closes the stream, which ends the operation.
func (n *inside) OpenFile(ctx context.Context, id string, f channel.File) (*channel.Conn, channel.FileInfo, error) {
	var info channel.FileInfo
	switch f.Op {
	case channel.FileList, channel.FileRead, channel.FileWrite, channel.FileWatch:
	case channel.FileStat, channel.FileMkdir, channel.FileMove, channel.FileRemove:
		return nil, info, fault.Invalid("the file operation %q has no stream", f.Op)
	default:
		return nil, info, fault.Invalid("there is no file operation %.40q", f.Op)
	}
	s, err := n.runningSandbox(id)
	if err != nil {
		return nil, info, err
	}
	f.User = s.info.Account.User(f.User)
	s.inventory.AsRoot(f.User)
	if err := CheckFile(f); err != nil {
		return nil, info, err
	}
	t, err := transfers.Begin(ctx, n.cfg.Door, n.cfg.Log, id, f)
	if err != nil {
		return nil, info, err
	}
	conn, info, err := n.openFileStream(ctx, s, f)
	if err != nil {
		t.Answered(err)
		return nil, info, err
	}
	return channel.NewConn(t.Follow(conn, info)), info, nil
}

// openFileStream opens the stream of an operation, with what its first reply tells of the file. The
// bytes that are read are scanned.
func (n *inside) openFileStream(ctx context.Context, s *Sandbox, f channel.File) (net.Conn, channel.FileInfo, error) {
	conn, reply, err := n.stream(ctx, s, channel.Call{Kind: channel.CallFile, File: &f})
	if err != nil {
		return nil, channel.FileInfo{}, err
	}
	info, err := reply.FileInfo()
	if err == nil && f.Op == channel.FileRead {
		var scanned net.Conn
		if scanned, err = n.outgoing.File(ctx, conn, s.info.ID, f.Path, info.Size); err == nil {
			conn = scanned
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, info, err
	}
	return conn, info, nil
}

// stream opens a stream to the guest which counts as a client until it is closed.
func (n *inside) stream(ctx context.Context, s *Sandbox, call channel.Call) (net.Conn, channel.Reply, error) {
	over := s.clients.Use()
	ctx, cancel := s.waits.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, reply, err := n.cfg.Keeper.Stream(ctx, s.info.ID, call)
	if err := refusedError(ctx, reply, err); err != nil {
		over()
		return nil, reply, err
	}
	return commands.Count(conn, over), reply, nil
}

// refusedError is why a call came to nothing: the guest's reason, or that it has none.
func refusedError(ctx context.Context, reply channel.Reply, err error) error {
	switch {
	case err == nil:
		return nil
	case !reply.OK && (reply.Error != "" || reply.Code != ""):
		return reply.Err()
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox's agent did not answer in %s", answerTimeout)
	default:
		return err
	}
}

// CheckFile refuses what would not arrive as it is: a message carries text, and
// what is none would name another file. U+FFFD stands in lists for bytes of a name that are no UTF-8,
// and many clients write it for such bytes by themselves: nobody can tell which file is meant. The error
// is a fault.ErrInvalid.
func CheckFile(f channel.File) error {
	if !utf8.ValidString(f.User) {
		return fault.Invalid("a user must be UTF-8, and %.200q is not", f.User)
	}
	for _, path := range []string{f.Path, f.To} {
		if !utf8.ValidString(path) {
			return fault.Invalid("a path must be UTF-8, and %.200q is not", path)
		}
		if strings.ContainsRune(path, utf8.RuneError) {
			return fault.Invalid("the path %.200q has U+FFFD, which stands for bytes that are no UTF-8, so it names no file for certain; use such a file, or rename it, by a command inside", path)
		}
		if len(path) > commands.MaxDir {
			return fault.Invalid("the path is %d bytes long; at most %d", len(path), commands.MaxDir)
		}
	}
	for name, value := range f.Metadata {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fault.Invalid("the metadata %.80q is not UTF-8", name)
		}
	}
	return nil
}

// runningSandbox returns a sandbox that runs.
func (n *inside) runningSandbox(id string) (*Sandbox, error) {
	s, err := n.registry.getSandbox(id)
	if err != nil {
		return nil, err
	}
	if state, _ := s.State(); !state.Usable() {
		return nil, state.Refuse(id)
	}
	return s, nil
}
