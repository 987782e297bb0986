package template

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// imageTool packs a folder into an EROFS image.
const imageTool = "mkfs.erofs"

// packImage turns the skeleton into an image in made, and takes the folder away. Where
// nothing packs images, or not such as gVisor reads (an old mkfs.erofs), the folder
// stays the root: sandboxes start slower then, and are the same otherwise.
func (k *skeleton) packImage(ctx context.Context, made string) (root engine.Root, size int64, err error) {
	const name = "rootfs.erofs"
	image := filepath.Join(made, name)
	if !k.makeImage(ctx, image) {
		if err := ctx.Err(); err != nil {
			return root, 0, err
		}
		_ = os.Remove(image) // half of one, if anything
		_, size, err = digestTree(ctx, k.dir)
		return engine.Root{Kind: engine.RootDir, Path: "root"}, size, orDiskFault(err, made)
	}
	if err := syncFile(image); err != nil {
		return root, 0, diskFault(err, made)
	}
	info, err := os.Stat(image)
	if err != nil {
		return root, 0, diskFault(err, made)
	}
	return engine.Root{Kind: engine.RootImage, Path: name}, info.Size(), orDiskFault(k.store.removeTree(ctx, k.dir), made)
}

// makeImage packs as debian is packed: as gVisor reads it, without extended attributes.
// It tells whether that could be done.
func (k *skeleton) makeImage(ctx context.Context, image string) bool {
	tool := k.store.findTool(imageTool)
	if tool == "" {
		return false
	}
	args := []string{"--quiet", "-Enoinline_data", "-x-1"}
	if os.Geteuid() != 0 {
		// All of the folder is its builder's, who can't give anything away, so all of
		// the image is the sandbox's one user's.
		args = append(args, "--force-uid=1000", "--force-gid=1000")
	}
	cmd := exec.CommandContext(ctx, tool, append(args, image, k.dir)...)
	cmd.Env = executable.SystemEnvironment()
	return cmd.Run() == nil
}

func orDiskFault(err error, dir string) error {
	if err == nil {
		return nil
	}
	return diskFault(err, dir)
}
