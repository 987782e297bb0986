package guest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
)

// reseeder is a shared library that calls OpenSSL's RAND_seed when it is loaded, and does
// nothing else: it has the OpenSSL of the process that loads it take fresh random numbers
// of the kernel's. Node has no other way to that, and there is no compiler to make one, so
// it is put together here. nil where this processor's code is not known.
func reseeder() []byte {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	const (
		page    = 0x1000
		symbols = 0x100 // two of 24 bytes: none, and RAND_seed
		names   = 0x140
		hash    = 0x160 // one bucket
		fixes   = 0x180 // one relocation of 24 bytes
		code    = 0x1a0
		data    = 0x1c0
		got     = page        // in the second segment, which is at its own page
		dynamic = page + 0x10 // after that
		entries = 11          // of 16 bytes
		name    = "\x00RAND_seed\x00"
		seed    = "a copy"
	)
	lib := make([]byte, dynamic+entries*16)
	put := func(at int, values ...any) {
		var b bytes.Buffer
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // of fixed size, into memory
		}
		copy(lib[at:], b.Bytes())
	}
	put(0, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 4, Shentsize: 64,
	},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Filesz: data + 16, Memsz: data + 16, Align: page},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: got, Vaddr: got, Paddr: got, Filesz: 16 + entries*16, Memsz: 16 + entries*16, Align: page},
		elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R | elf.PF_W), Off: dynamic, Vaddr: dynamic, Paddr: dynamic, Filesz: entries * 16, Memsz: entries * 16, Align: 8},
		elf.Prog64{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
	)
	put(symbols, elf.Sym64{}, elf.Sym64{Name: 1, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)})
	put(names, []byte(name))
	put(hash, []uint32{1, 2, 1, 0, 0}) // one bucket, two symbols: the second is in it, and ends it
	put(fixes, elf.Rela64{Off: got, Info: elf.R_INFO(1, uint32(elf.R_X86_64_GLOB_DAT))})
	put(code,
		[]byte{0x48, 0x8d, 0x3d}, int32(data-(code+7)), // lea rdi, [data]
		[]byte{0xbe}, int32(len(seed)), // mov esi, its length
		[]byte{0xff, 0x25}, int32(got-(code+18)), // jmp [got]
	)
	put(data, []byte(seed))
	put(dynamic, []elf.Dyn64{
		{Tag: int64(elf.DT_HASH), Val: hash},
		{Tag: int64(elf.DT_SYMTAB), Val: symbols},
		{Tag: int64(elf.DT_SYMENT), Val: 24},
		{Tag: int64(elf.DT_STRTAB), Val: names},
		{Tag: int64(elf.DT_STRSZ), Val: uint64(len(name))},
		{Tag: int64(elf.DT_RELA), Val: fixes}, //nolint:misspell // the names of ELF
		{Tag: int64(elf.DT_RELASZ), Val: 24},
		{Tag: int64(elf.DT_RELAENT), Val: 24},
		{Tag: int64(elf.DT_INIT), Val: code},
		{Tag: int64(elf.DT_FLAGS), Val: 8},
		{},
	})
	return lib
}
