package wasm

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"os"

	"github.com/tetratelabs/wazero"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// quickjs is the module as its publisher made it; see quickjs/README.md.
//
//go:embed quickjs/quickjs.wasm
var quickjs []byte

// quickjsSHA256 is its digest.
const quickjsSHA256 = "d4c9375f2b1ca4dc95f72c8aa2982a7a9951ac8011490d79c6582df732b4bbd9"

//go:embed prelude.js
var prelude string

// pageBytes is WebAssembly's unit of memory.
const pageBytes = 64 << 10

// compiler is what was compiled, and what keeps it.
type compiler struct {
	cache   wazero.CompilationCache
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// compile makes the machine code, or takes it from cacheDir.
func compile(ctx context.Context, cacheDir string) (*compiler, error) {
	if sum := sha256.Sum256(quickjs); hex.EncodeToString(sum[:]) != quickjsSHA256 {
		return nil, fault.New(fault.ErrUnavailable, "the JavaScript engine in this binary is not the one that it was built with; install Cofferdam anew")
	}
	cache, err := openCache(cacheDir)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the directory %s for compiled code can't be used", cacheDir)
	}
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(mostMemory / pageBytes).WithDebugInfoEnabled(false)
	c := &compiler{cache: cache, runtime: wazero.NewRuntimeWithConfig(ctx, config.WithCompilationCache(cache))}
	if err = offerImports(ctx, c.runtime); err == nil {
		c.module, err = c.runtime.CompileModule(ctx, quickjs)
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.ErrUnavailable, err, "the JavaScript engine can't be compiled here"), c.closeCompiler(ctx))
	}
	return c, nil
}

func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return wazero.NewCompilationCache(), nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return wazero.NewCompilationCacheWithDir(dir)
}

// closeCompiler ends all modules, and gives the machine code back.
func (c *compiler) closeCompiler(ctx context.Context) error {
	return errors.Join(c.runtime.Close(ctx), c.cache.Close(ctx))
}
