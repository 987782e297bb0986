package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// fileCall is one operation of the host on files.
type fileCall struct {
	*channel.File
	agent    *Agent
	identity *identity
	user     channel.User
	stream   *channel.Conn
	path     string // clean
}

// answerFile does one operation. A failure with a file is a Reply; an error is
// of the stream.
func (a *Agent) answerFile(ctx context.Context, stream *channel.Conn, file *channel.File) error {
	c, err := a.newFileCall(stream, file)
	if err != nil {
		return replyFile(stream, nil, err)
	}
	switch file.Op {
	case channel.FileStat:
		return c.replyInfo(c.statFile)
	case channel.FileMkdir:
		return c.replyInfo(c.makeDir)
	case channel.FileMove:
		return c.replyInfo(c.moveFile)
	case channel.FileRemove:
		return c.replyInfo(c.removeFile)
	case channel.FileList:
		return c.listDir(ctx)
	case channel.FileRead:
		return c.sendFile(ctx)
	case channel.FileWrite:
		return c.writeFile()
	case channel.FileWatch:
		return c.watchDir(ctx)
	default:
		return replyFile(stream, nil, invalidFile("the guest agent does not know the file operation %.40q", file.Op))
	}
}

func (a *Agent) newFileCall(stream *channel.Conn, file *channel.File) (*fileCall, error) {
	if file == nil {
		return nil, errors.New("a file call needs its body")
	}
	identity, err := a.currentIdentity()
	if err != nil {
		return nil, err
	}
	user, err := identity.resolveUser(file.User)
	if err != nil {
		return nil, &fileError{channel.CodeInvalid, err.Error()}
	}
	if file.Give && (user.UID != 0 || file.Op != channel.FileWrite && file.Op != channel.FileMkdir) {
		return nil, invalidFile("only what root writes or makes can be given to the user")
	}
	c := &fileCall{File: file, agent: a, identity: identity, user: user, stream: stream}
	c.path, err = cleanPath(user, file.Path)
	return c, err
}

// doAt finds the place of the call's path and has do done there, both with the
// user's rights. The place is closed afterwards.
func (c *fileCall) doAt(how search, do func(*filePlace) error) error {
	return actAs(c.user, func() error {
		p, err := locate(c.agent.config.Root, c.path, how)
		if err != nil {
			return err
		}
		defer p.closePlace()
		return do(p)
	})
}

// replyInfo replies with what an operation found.
func (c *fileCall) replyInfo(do func() (*channel.FileInfo, error)) error {
	info, err := do()
	return replyFile(c.stream, info, explainFile(c.path, err))
}

func (c *fileCall) statFile() (*channel.FileInfo, error) {
	var info *channel.FileInfo
	err := c.doAt(search{kernel: true}, func(p *filePlace) (err error) {
		info, err = c.infoOf(p)
		return err
	})
	return info, err
}

func (c *fileCall) makeDir() (*channel.FileInfo, error) {
	var at *filePlace
	var info *channel.FileInfo
	err := actAs(c.user, func() (err error) {
		if at, err = locate(c.agent.config.Root, c.path, search{parents: true, give: c.Give}); err != nil {
			return err
		}
		if err := unix.Mkdirat(at.dir, at.name, 0o755); err != nil {
			return err
		}
		if err := c.setDirMode(at); err != nil || !c.Give {
			return err
		}
		made, err := openDir(at.dir, at.name)
		if err == nil {
			at.made = append(at.made, made)
		}
		return err
	})
	if at != nil {
		defer at.closePlace()
	}
	if err == nil && c.Give {
		err = c.giveToUser(at.made)
	}
	if err != nil {
		return nil, err
	}
	err = actAs(c.user, func() (err error) {
		info, err = c.infoOf(at)
		return err
	})
	return info, err
}

// setDirMode gives a new directory the mode that was asked for.
func (c *fileCall) setDirMode(p *filePlace) error {
	if c.Mode == 0 {
		return nil
	}
	dir, err := unix.Openat(p.dir, p.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // nothing was written
	return unix.Fchmod(dir, c.Mode&modeBits)
}

// fileError is what the host is told of a file's error.
type fileError struct {
	code     channel.ErrorCode
	sentence string
}

func (e *fileError) Error() string { return e.sentence }

func invalidFile(format string, args ...any) error {
	return &fileError{channel.CodeInvalid, fmt.Sprintf(format, args...)}
}

// explainFile makes a fileError of the kernel's; nil stays nil.
func explainFile(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fileError](err); ok {
		return err
	}
	errno, ok := errors.AsType[unix.Errno](err)
	if !ok {
		return err
	}
	code, sentence := describeErrno(errno)
	return &fileError{code, fmt.Sprintf("%.300q: %s", path, sentence)}
}

func describeErrno(errno unix.Errno) (channel.ErrorCode, string) {
	switch errno {
	case unix.ENOENT:
		return channel.CodeNotFound, "there is no such file or directory in the sandbox"
	case unix.EEXIST:
		return channel.CodeExists, "it exists already"
	case unix.ENOTEMPTY:
		return channel.CodeExists, "the directory is not empty"
	case unix.EACCES, unix.EPERM:
		return channel.CodePermission, "permission denied to the user"
	case unix.EROFS:
		return channel.CodePermission, "it lies where nothing can be written"
	case unix.ENOSPC, unix.EDQUOT:
		return channel.CodeNoSpace, "the sandbox has no space left"
	case unix.ENOTDIR:
		return channel.CodeInvalid, "a part of the path is not a directory"
	case unix.EISDIR:
		return channel.CodeInvalid, "it is a directory"
	case unix.ELOOP:
		return channel.CodeInvalid, "too many symbolic links, or one in a circle"
	case unix.ENAMETOOLONG:
		return channel.CodeInvalid, "a name in the path is too long"
	case unix.EBUSY:
		return channel.CodeInvalid, "something is mounted there"
	case unix.EXDEV:
		return channel.CodeInvalid, "a directory can't be moved to another file system"
	case unix.EINVAL:
		return channel.CodeInvalid, "the kernel does not do that there"
	default:
		return "", errno.Error()
	}
}

// replyFile answers with an error, or with OK and an info where there is one.
func replyFile(stream *channel.Conn, info *channel.FileInfo, err error) error {
	answer := channel.Reply{OK: err == nil}
	if err != nil {
		answer.Error = err.Error()
		if failure, ok := errors.AsType[*fileError](err); ok {
			answer.Code = failure.code
		}
	} else if info != nil {
		var failed error
		if answer.Body, failed = json.Marshal(info); failed != nil {
			return failed
		}
	}
	return stream.WriteJSON(channel.FrameReply, answer)
}

// untilHostCloses returns a context that ends when the host closes its side of the stream,
// which means that it wants no more. The function ends the listening; nothing
// may be read from the stream between.
func untilHostCloses(ctx context.Context, stream *channel.Conn) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer cancel()
		_, _ = io.Copy(io.Discard, struct{ io.Reader }{stream.Raw()})
	}()
	return ctx, func() {
		_ = stream.Raw().SetReadDeadline(time.Now())
		<-over
	}
}
