package gateway

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// A file that a guest asks for is located first, then verified, then judged. Each is a type
// of its own, so that a signature says what is known: located is what it is, before
// any of its bytes is here; verified is that with its bytes and what they say;
// delivery.Judged and delivery.Shown are what may be sent, and only the door's answer
// makes one.

// located is a file, or what describes a release, of which it is known which it is.
type located struct {
	subject
	ref  pkgref.Ref // with version; of metadata that a query names without
	file ecosystem.File
	row  []byte // what the index says of it, for an Inspector
	url  string // of the file
	// of is the source distribution that the file is built of; nil: it is published.
	of *ecosystem.File
}

// fileAsk is what a question tells of it, by what is known before it is here.
func (l located) fileAsk() door.FileAsk {
	return door.FileAsk{
		Sandbox: l.sandbox, Package: l.ref, File: pages.DoorFile(l.file), SourceURL: l.url,
		Upstream: l.source.Index, Toolchain: l.source.Toolchain(l.ref.Name),
	}
}

// wanted is the file to be had.
func (l located) wanted() artifacts.Wanted { return l.source.wanted(l.route.Project, l.file) }

// verified is what was located, with what its verified bytes say.
type verified struct {
	located
	bytes   *artifacts.Verified // of a file; nil of metadata
	digests []string            // all that are known
	found   described
	release *door.File // of metadata: the file that it describes; nil: not known
	kept    bool       // the cache had the bytes when they were asked for
}

// fileAsk is what a question tells of it, with all that is known by now.
func (v verified) fileAsk() door.FileAsk {
	ask := v.located.fileAsk()
	ask.Release, ask.Digests = v.release, v.digests
	ask.Bundled, ask.Findings, ask.Contents = v.found.Bundled, v.found.Findings, v.found.Contents
	return ask
}

// filePaths are those of the file's files, as far as they are known.
func (v verified) filePaths() []string {
	if v.found.Inside == nil {
		return nil
	}
	return v.found.Inside.Paths
}

// fileOf is a located file with its verified bytes and what was found in them. stricter
// tells that the policy may think otherwise of it now: the index said that nothing runs.
func fileOf(l located, bytes *artifacts.Verified, kept bool, d described) (v verified, stricter bool) {
	v = verified{located: l, bytes: bytes, kept: kept, found: d}
	for _, digest := range []string{l.file.Digest, bytes.Digest(), bytes.SHA512(), d.Sum} {
		if digest != "" && !slices.Contains(v.digests, digest) {
			v.digests = append(v.digests, digest)
		}
	}
	if v.file.Size == 0 {
		v.file.Size = bytes.Size()
	}
	stricter = len(d.Scripts) > 0 && !v.file.Scripts
	v.file.Scripts = v.file.Scripts || len(d.Scripts) > 0
	return v, stricter
}

// metadataOf is located metadata with what the upstream's, verified, says.
func metadataOf(l located, found attached) verified {
	l.ref.Version, l.file.Version, l.file.Digest = found.Version, found.Version, found.digest
	return verified{located: l, digests: found.digests}
}
