// Package gitwire reads what git says over HTTP: which requests are about which repository,
// and what a push is about to change. It does no input or output of its own.
//
// Git's smart protocol is the one with services, git-upload-pack for a fetch and git-receive-pack
// for a push. Its dumb one reads a repository's files, and is not read here. A command of a push
// moves one ref from an old object to a new one.
package gitwire

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/pathseg"
)

// Operation is what is done with a repository.
type Operation string

// The operations. A clone is a fetch.
const (
	Fetch Operation = "fetch"
	Push  Operation = "push"
)

// The services of the smart protocol.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
	archive     = "git-upload-archive" // which has no HTTP
)

// Bounds of a repository's name.
const (
	maxName     = 500 // bytes
	maxSegments = 20
)

// Request is a request of the smart protocol.
type Request struct {
	Operation  Operation
	Repository string // "acme/app": the path without a .git at its end
	// Carries tells that it is the request with which objects go one way or the other; the
	// others ask which refs there are.
	Carries bool
}

// Read tells what a request is, by its method, its path as it is sent, and its query. found
// is false for what is none of git's. wrong says in a few words why one that could be git's
// is not passed on: whoever answers could find another repository or service in it than is
// read here.
func Read(method, path, query string) (r Request, found bool, wrong string) {
	if !resembles(path) {
		return Request{}, false, ""
	}
	for _, end := range []struct {
		suffix, method, query string
		request               Request
	}{
		{"/info/refs", "GET", "service=" + uploadPack, Request{Operation: Fetch}},
		{"/info/refs", "GET", "service=" + receivePack, Request{Operation: Push}},
		{"/" + uploadPack, "POST", "", Request{Operation: Fetch, Carries: true}},
		{"/" + receivePack, "POST", "", Request{Operation: Push, Carries: true}},
	} {
		name, is := strings.CutSuffix(path, end.suffix)
		if !is || method != end.method || query != end.query {
			continue
		}
		r = end.request
		r.Repository, wrong = Repository(strings.TrimPrefix(name, "/"))
		return r, true, wrong
	}
	switch {
	case strings.HasSuffix(path, "/info/refs") && query == "":
		return Request{}, true, "is one of git's dumb protocol, which is not passed on"
	case strings.HasSuffix(path, "/info/refs") || strings.HasSuffix(path, "/"+uploadPack) || strings.HasSuffix(path, "/"+receivePack):
		return Request{}, true, "has a method or a query that git's smart protocol does not have there"
	}
	return Request{}, true, "resembles one of git's, and is written in another way than git writes it"
}

// resembles tells whether a server might take a path for one of git's smart protocol, also
// one that decodes it twice, or is not particular about slashes, dots and capitals.
func resembles(path string) bool {
	for range 3 {
		path = bareSlashes(path)
	}
	var segments []string
	for one := range strings.SplitSeq(path, "/") {
		name, wrong := pathseg.Fold(one)
		name, _, _ = strings.Cut(name, "?")
		switch {
		case wrong != "":
			segments = append(segments, strings.ToLower(one))
		case name == "" || name == ".":
		case name == "..":
			segments = segments[:max(0, len(segments)-1)]
		default:
			segments = append(segments, name)
		}
	}
	return reserved(segments)
}

// bareSlashes is a path once without the escapes of its slashes, also of backslashes and
// of the escapes themselves.
func bareSlashes(path string) string {
	return strings.NewReplacer("%25", "%", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", `\`, "/").Replace(path)
}

// reserved tells whether segments have in them what ends a path of the smart protocol.
func reserved(segments []string) bool {
	for i, one := range segments {
		switch {
		case slices.Contains([]string{uploadPack, receivePack, archive}, strings.TrimRight(one, ".")):
			return true
		case one == "refs" && i > 0 && segments[i-1] == "info":
			return true
		}
	}
	return false
}

// Repository is the canonical name of a repository: "acme/app" of "acme/app.git". wrong says
// in a few words why a path is none.
func Repository(path string) (name, wrong string) {
	name = strings.TrimSuffix(path, ".git")
	segments := strings.Split(name, "/")
	switch {
	case name == "":
		return "", "names no repository"
	case len(name) > maxName || len(segments) > maxSegments:
		return "", "has a repository's name that is too long"
	case reserved(strings.Split(strings.ToLower(name), "/")):
		return "", "has a part of git's protocol in the repository's name"
	}
	for _, one := range segments {
		switch {
		case one == "" || one == "." || one == "..":
			return "", "has an empty segment, . or .. in the repository's name"
		case strings.HasSuffix(strings.ToLower(one), ".git"):
			return "", "has a .git in the repository's name that is not its end, or is not written so"
		case strings.Trim(strings.ToLower(one), nameLetters) != "":
			return "", "has a character in the repository's name that is none of letters, digits and - . _ ~ + @"
		}
	}
	return name, ""
}

// nameLetters are those of repositories' names, in lower case.
const nameLetters = "abcdefghijklmnopqrstuvwxyz0123456789-._~+@"
