# SPDX-License-Identifier: MIT
# make, make demo, make check, make bench, make install [PREFIX=/usr/local] [DESTDIR=], make clean
#
# Nothing is listed here: a program is a file src/NAME.c, the core library is lib/*/*.c (without
# lib/client, which is the public libpreempt and needs no other library).
# SANITIZE=1 builds the same into build/asan, with AddressSanitizer and UndefinedBehaviorSanitizer.

VERSION  := 0.1.0
# make V=1 shows the commands.
PREFIX   ?= /usr/local
DESTDIR  ?=
CC       ?= cc
CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wwrite-strings -Wmissing-prototypes -Wstrict-prototypes \
            -Wconversion -Wpointer-arith -Wundef -Wformat=2
ifdef WERROR
WARNINGS += -Werror
endif

ifdef SANITIZE
OUT    := build/asan
BIN    := build/asan/bin
CHECKS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else
OUT    := build/plain
BIN    := bin
CHECKS :=
endif

Q   := $(if $(V),,@)
say := @$(if $(V),:,echo " ")

ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DPREEMPT_VERSION='"$(VERSION)"' -Ilib $(WARNINGS) $(CFLAGS) $(CHECKS) -MMD -MP
LIBS       := -largtable2 -ljson-c -lsqlite3 -lxxhash -lpthread

programs    := $(patsubst src/%.c,%,$(wildcard src/*.c))
core_source := $(filter-out lib/client/%,$(wildcard lib/*/*.c))
core        := $(OUT)/libcore.a
unit_tests  := $(patsubst tests/unit/%.c,$(OUT)/unit/%,$(wildcard tests/unit/*.c))
# Programs that tests and examples need, each one file: tests/bench, tests/rig, tests/clients,
# examples. The files of tests/sim are one program.
sim         := $(OUT)/tests/sim/agreement_sim
extra       := $(patsubst %.c,$(OUT)/%,$(wildcard tests/bench/*.c tests/rig/*.c tests/clients/*.c examples/*.c))
client      := $(OUT)/libpreempt.a $(OUT)/libpreempt.so.0

.PHONY: all everything deps demo check bench install clean format
all: deps $(addprefix $(BIN)/,$(programs)) $(client)
everything: all $(unit_tests) $(extra) $(sim)

# What a build needs is installed if we may, else the exact command is said.
deps:
	@tests/rig/packages build

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The public client is position independent and exports only what preempt.h declares.
$(OUT)/lib/client/%.o: lib/client/%.c
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -c -o $@ $<

$(core): $(core_source:%.c=$(OUT)/%.o)
	@rm -f $@
	$(say) AR $@
	$(Q)$(AR) rcs $@ $^

client_objects := $(patsubst %.c,$(OUT)/%.o,$(wildcard lib/client/*.c))
$(OUT)/libpreempt.a: $(client_objects)
	@rm -f $@
	$(say) AR $@
	$(Q)$(AR) rcs $@ $^
$(OUT)/libpreempt.so.0: $(client_objects)
	$(say) LD $@
	$(Q)$(CC) $(CHECKS) -shared -Wl,-soname,libpreempt.so.0 -o $@ $^
	@ln -sf libpreempt.so.0 $(OUT)/libpreempt.so

$(BIN)/%: $(OUT)/src/%.o $(core) $(OUT)/libpreempt.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CHECKS) $(LDFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS)
$(OUT)/unit/%: $(OUT)/tests/unit/%.o $(core) $(OUT)/libpreempt.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CHECKS) $(LDFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS)
$(extra): $(OUT)/%: $(OUT)/%.o $(core) $(OUT)/libpreempt.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CHECKS) $(LDFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS) -lm
# The example of the demo has parts of its own.
$(OUT)/examples/train: $(patsubst %.c,$(OUT)/%.o,$(wildcard examples/training/*.c))
$(sim): $(patsubst %.c,$(OUT)/%.o,$(wildcard tests/sim/*.c)) $(core)
	$(say) LD $@
	$(Q)$(CC) $(CHECKS) $(LDFLAGS) -o $@ $^

demo: all
	@$(MAKE) --no-print-directory $(OUT)/examples/train
	@examples/demo.sh

check:
	@tests/run

bench: everything
	@tests/bench/bench.sh

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include \
	  $(DESTDIR)$(PREFIX)/share/preempt $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man3 $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 755 $(addprefix $(BIN)/,$(programs)) $(DESTDIR)$(PREFIX)/bin
	install -m 644 lib/client/preempt.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(OUT)/libpreempt.a $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(OUT)/libpreempt.so.0 $(DESTDIR)$(PREFIX)/lib
	ln -sf libpreempt.so.0 $(DESTDIR)$(PREFIX)/lib/libpreempt.so
	install -m 644 lib/client/preempt.sh lib/client/preempt.py $(DESTDIR)$(PREFIX)/share/preempt
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' lib/client/preempt.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/preempt.pc
	$(if $(wildcard man/*.1),install -m 644 $(wildcard man/*.1) $(DESTDIR)$(PREFIX)/share/man/man1)
	$(if $(wildcard man/*.3),install -m 644 $(wildcard man/*.3) $(DESTDIR)$(PREFIX)/share/man/man3)
	$(if $(wildcard man/*.7),install -m 644 $(wildcard man/*.7) $(DESTDIR)$(PREFIX)/share/man/man7)

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build $(filter-out bin/.gitkeep,$(wildcard bin/*))

.SECONDARY:
-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
