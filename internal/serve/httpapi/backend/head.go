package backend

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// HeadOf is what a request for a file's headers alone is told of, without reading the file: that
// would be on record as a read that broke off. A symbolic link is told of as what it leads to, by
// its own name. false: it is no regular file or can't be told of, and opening it says why.
func HeadOf(ctx context.Context, s Sandboxes, id string, f channel.File) (channel.FileInfo, bool) {
	f.Op = channel.FileStat
	info, err := s.File(ctx, id, f)
	if err != nil {
		return info, false
	}
	if info.Kind == channel.KindSymlink && info.Leads == channel.KindFile {
		name := info.Path
		f.Path = info.Resolved
		if info, err = s.File(ctx, id, f); err != nil {
			return info, false
		}
		info.Path = name
	}
	return info, info.Kind == channel.KindFile
}
