package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

const (
	// intrinsics are all that the language has, but its fine clock.
	intrinsics = 0xFFFFFFFF &^ (1 << 10)
	// stackBytes bounds how deep code nests. The module's own stack is larger.
	stackBytes = 256 << 10
	// grain is the unit in which the image differs from a new module's memory.
	grain = 4 << 10
)

// image is the memory from which every machine begins, as far as it differs from that of a
// new module. It does not change.
type image struct {
	size    uint32 // of the memory, in bytes
	patches []patch
	// Addresses in it.
	runtime, context uint32
	scratch          uint32 // of eight bytes for the host
	seed, encode     uint32 // functions of the prelude
	explain          uint32
}

// patch is a part of the image.
type patch struct {
	at   uint32
	data []byte
}

// instantiate makes a machine whose memory is as the module declares it.
func instantiate(ctx context.Context, c *compiler) (*machine, error) {
	own, err := reserve()
	if err != nil {
		return nil, err
	}
	allocator := experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return own })
	module, err := c.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, allocator), c.module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		own.Free()
		return nil, err
	}
	return &machine{module: module, memory: own, known: map[string]api.Function{}}, nil
}

// drawImage makes the image.
func drawImage(ctx context.Context, c *compiler) (*image, error) {
	fresh, err := instantiate(ctx, c)
	if err != nil {
		return nil, err
	}
	defer fresh.closeMachine(ctx)
	model, err := instantiate(ctx, c)
	if err != nil {
		return nil, err
	}
	defer model.closeMachine(ctx)
	img := &image{}
	model.image = img
	if err := img.setUp(ctx, model); err != nil {
		return nil, err
	}
	const stack = "__stack_pointer"
	if is, was := model.module.ExportedGlobal(stack), fresh.module.ExportedGlobal(stack); is == nil || is.Get() != was.Get() {
		return nil, errors.New("the module's stack is not empty after the prelude")
	}
	img.compare(model.module.Memory(), fresh.module.Memory())
	return img, nil
}

// setUp begins the language in a module, and evaluates the prelude.
func (img *image) setUp(ctx context.Context, m *machine) error {
	if _, err := m.callFunction(ctx, "_initialize"); err != nil {
		return err
	}
	if failed, err := m.callFunction(ctx, "qjs_init2", intrinsics); err != nil || failed != 0 {
		return fmt.Errorf("begin the language: it says %d: %w", failed, err)
	}
	for name, value := range map[string]uint64{"qjs_set_max_stack_size": stackBytes, "qjs_set_interrupt_handler": 1} {
		if _, err := m.callFunction(ctx, name, value); err != nil {
			return err
		}
	}
	var err error
	if img.scratch, err = m.callFunction(ctx, "wasm_malloc", 8); err != nil {
		return err
	}
	functions, err := img.prelude(ctx, m)
	if err != nil {
		return err
	}
	for name, address := range map[string]*uint32{"seed": &img.seed, "encode": &img.encode, "explain": &img.explain} {
		if *address, err = m.property(ctx, functions, name); err != nil {
			return err
		}
		if is, err := m.askModule(ctx, "qjs_is_function", uint64(*address)); err != nil || !is {
			return fmt.Errorf("the prelude has no function %s: %w", name, err)
		}
	}
	if img.runtime, err = m.callFunction(ctx, "qjs_get_runtime_ptr"); err != nil {
		return err
	}
	img.context, err = m.callFunction(ctx, "qjs_get_context_ptr")
	return err
}

// prelude evaluates the prelude, and gives the object with its functions.
func (img *image) prelude(ctx context.Context, m *machine) (functions uint32, err error) {
	name, err := m.writeText(ctx, "host")
	if err != nil {
		return 0, err
	}
	host, err := m.callFunction(ctx, "qjs_new_host_function", uint64(name), 4, 0)
	if err != nil {
		return 0, err
	}
	made, err := m.evaluate(ctx, prelude, "prelude.js", 0)
	if err != nil {
		return 0, err
	}
	if functions, err = m.applyFunction(ctx, made, host); err != nil {
		return 0, err
	}
	if is, err := m.askModule(ctx, "qjs_is_object", uint64(functions)); err != nil || !is {
		return 0, fmt.Errorf("the prelude made nothing: %w", err)
	}
	return functions, nil
}

// compare keeps where the model's memory is another than a new module's.
func (img *image) compare(model, fresh api.Memory) {
	img.size = model.Size()
	is, _ := model.Read(0, model.Size())
	was, _ := fresh.Read(0, fresh.Size())
	zero := make([]byte, grain)
	for at := 0; at < len(is); at += grain {
		before := zero
		if at < len(was) {
			before = was[at : at+grain]
		}
		if part := is[at : at+grain]; !bytes.Equal(part, before) {
			img.patches = append(img.patches, patch{uint32(at), bytes.Clone(part)})
		}
	}
}

// machine makes a machine that begins from the image.
func (img *image) machine(ctx context.Context, c *compiler) (*machine, error) {
	m, err := instantiate(ctx, c)
	if err != nil {
		return nil, err
	}
	m.image = img
	if err := img.copyTo(ctx, m); err != nil {
		m.closeMachine(ctx)
		return nil, err
	}
	return m, nil
}

func (img *image) copyTo(ctx context.Context, m *machine) error {
	to := m.module.Memory()
	if more := int64(img.size) - int64(to.Size()); more > 0 {
		if _, ok := to.Grow(uint32(more / pageBytes)); !ok {
			return errNoRoom
		}
	}
	for _, p := range img.patches {
		if !to.Write(p.at, p.data) {
			return errNoRoom
		}
	}
	_, err := m.callFunction(ctx, "qjs_set_runtime_and_context", uint64(img.runtime), uint64(img.context))
	return err
}
