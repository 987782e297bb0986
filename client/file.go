package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
)

// File names a file of a sandbox.
type File struct {
	Path string // absolute, or relative to the user's home; "~" is the home
	User string // "": the sandbox's own, or root
	Mode uint32 // of what is made; 0: 0644, or 0755 of a directory
}

func (f File) query() url.Values {
	q := url.Values{"path": {f.Path}}
	if f.User != "" {
		q.Set("user", f.User)
	}
	return q
}

// FileContent is a file of a sandbox that is open to be read.
type FileContent struct {
	io.ReadCloser
	// Size is how many bytes it had when it was opened, whatever links led to it, as the sandbox
	// says; -1: the daemon does not tell, which is of an older version.
	Size int64
}

// ReadFile opens a regular file of a sandbox. The caller closes it; a file that
// could not be read to its end fails with an error that is not io.EOF.
func (c *Client) ReadFile(ctx context.Context, sandbox string, f File) (*FileContent, error) {
	resp, err := c.send(ctx, http.MethodGet, sandboxPath(sandbox)+"/files"+encoded(f.query()), nil) //nolint:bodyclose // whoever has the content closes it
	if err != nil {
		return nil, err
	}
	content := &FileContent{ReadCloser: resp.Body, Size: -1}
	if size, err := strconv.ParseInt(resp.Header.Get(api.FileSizeHeader), 10, 64); err == nil && size >= 0 {
		content.Size = size
	}
	return content, nil
}

// WriteFile stores content under a path; directories above it are made. The file
// is replaced in one step, or left as it was.
func (c *Client) WriteFile(ctx context.Context, sandbox string, f File, content io.Reader) (api.FileInfo, error) {
	q := f.query()
	if f.Mode != 0 {
		q.Set("mode", strconv.FormatUint(uint64(f.Mode), 8))
	}
	// The transport would close what it can; the content is the caller's.
	req, err := c.rawRequest(ctx, http.MethodPut, sandboxPath(sandbox)+"/files"+encoded(q), io.NopCloser(content))
	if err != nil {
		return api.FileInfo{}, err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	return sendAndDecode[api.FileInfo](c, req)
}

// StatFile tells of one file; a symbolic link is not followed.
func (c *Client) StatFile(ctx context.Context, sandbox string, f File) (api.FileInfo, error) {
	return fetchResult[api.FileInfo](ctx, c, http.MethodGet, sandboxPath(sandbox)+"/files/stat"+encoded(f.query()), nil)
}

// ListFiles yields what is in a directory, in the order of paths; depth 1 is its own entries. After
// an error nothing more comes. The entries are the sandbox's claim: check a name before a file of
// this machine gets it.
func (c *Client) ListFiles(ctx context.Context, sandbox string, f File, depth int) iter.Seq2[api.FileInfo, error] {
	q := f.query()
	q.Set("depth", strconv.Itoa(depth))
	return readLines[api.FileInfo](ctx, c, sandboxPath(sandbox)+"/files/list"+encoded(q))
}

// MakeDirectory makes a directory and those above it; status 409 if it is there.
func (c *Client) MakeDirectory(ctx context.Context, sandbox string, f File) (api.FileInfo, error) {
	return fetchResult[api.FileInfo](ctx, c, http.MethodPost, sandboxPath(sandbox)+"/files/mkdir", api.MakeDirectory{Path: f.Path, User: f.User, Mode: f.Mode})
}

// MoveFile renames.
func (c *Client) MoveFile(ctx context.Context, sandbox string, f File, to string) (api.FileInfo, error) {
	return fetchResult[api.FileInfo](ctx, c, http.MethodPost, sandboxPath(sandbox)+"/files/move", api.MoveFile{Path: f.Path, To: to, User: f.User})
}

// RemoveFile removes a file, or a directory with all that is in it.
func (c *Client) RemoveFile(ctx context.Context, sandbox string, f File) error {
	return c.call(ctx, http.MethodDelete, sandboxPath(sandbox)+"/files"+encoded(f.query()), nil, nil)
}
