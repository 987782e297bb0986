package sandbox

import "github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"

// missesHostEvents tells whether a sandbox shows directories that both it and the host
// change, without the host's kernel telling it: a kernel of its own sees new content when
// it reads, and has no file events of what others wrote.
func missesHostEvents(info Info, wall engine.Wall) bool {
	return len(info.WritableMounts) > 0 && wall != engine.WallContainer
}

// pollingEnv has watchers of files look for changes by themselves. Each variable is one
// that its program documents: chokidar's is also that of Vite and most other development
// servers in Node, watchpack is webpack's and Next's, watchfiles is uvicorn's.
func pollingEnv() map[string]string {
	return map[string]string{
		"CHOKIDAR_USEPOLLING":      "true",
		"WATCHPACK_POLLING":        "true",
		"WATCHFILES_FORCE_POLLING": "true",
	}
}
