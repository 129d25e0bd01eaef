# SPDX-License-Identifier: MIT
# make, make deps, make demo, make check, make check-all, make bench [SECTION=queue|scale],
# make fuzz [SECONDS=60],
# make soak [LIVES=500],
# make install, make uninstall [PREFIX=/usr/local] [LIBDIR=PREFIX/lib] [DESTDIR=], make clean,
# make dist, make deb, make static: the source, Debian packages, and static programs, into build/dist, build/deb
# and build/static
#
# No file is listed here: a program is src/NAME.c with src/NAME/*.c, if that directory exists; the
# core library is lib/*/*.c and lib/*/*/*.c without lib/client, which is the public libpreempt and
# needs no other library.
# SANITIZE=1 builds the same into build/asan, with AddressSanitizer and UndefinedBehaviorSanitizer.
# LINK=dynamic links the libraries dynamically, LINK=all links the C library statically, too.
# WERROR=1 makes warnings errors, V=1 shows the commands.
# The caller's CPPFLAGS, CFLAGS and LDFLAGS are used.

VERSION    := $(file <VERSION)
PREFIX     ?= /usr/local
LIBDIR     ?= $(PREFIX)/lib
CC         ?= cc
CFLAGS     ?= -O2 -g
PKG_CONFIG ?= pkg-config
WARNINGS   := -Wall -Wextra -Wshadow -Wvla -Wwrite-strings -Wmissing-prototypes -Wstrict-prototypes \
              -Wconversion -Wpointer-arith -Wundef -Wformat=2

# FUZZ=1 builds the fuzz targets and what they need into build/fuzz ("make fuzz" sets it).
ifdef FUZZ
CC     := clang
OUT    := build/fuzz
BIN    := build/fuzz/bin
CFLAGS := -O1 -g1
WARNINGS := -Wall -Wextra -Wno-string-concatenation
CHECKS := -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifdef SANITIZE
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

# The programs are linked with LIBRARIES. They load libcurl when they run: a build uses only its headers.
LIBRARIES := argtable2 json-c sqlite3 libxxhash
HEADERS   := libcurl
LIBS      := $(shell $(PKG_CONFIG) --libs $(LIBRARIES) 2>/dev/null)
# static by default, if static libraries are installed: then preempt-claim takes 2.0 ms instead of 2.5.
LINK      ?= $(if $(filter /%,$(shell $(CC) -print-file-name=libsqlite3.a 2>/dev/null)),static,dynamic)
ifeq ($(LINK),static)
LIBS      := -Wl,-Bstatic $(LIBS) -Wl,-Bdynamic
else ifeq ($(LINK),all)
LIBS      := -static -Wl,--no-warnings $(LIBS)
endif
LIBS      += -lpthread -lm

ALL_CPPFLAGS := -D_GNU_SOURCE -DPREEMPT_VERSION=\"$(VERSION)\" -Ilib \
                $(shell $(PKG_CONFIG) --cflags $(LIBRARIES) $(HEADERS) 2>/dev/null) $(CPPFLAGS)
ALL_CFLAGS   := -std=gnu11 $(WARNINGS) $(CFLAGS) $(CHECKS)
ALL_LDFLAGS  := $(CFLAGS) $(CHECKS) $(LDFLAGS)

objects      = $(patsubst %.c,$(OUT)/%.o,$(wildcard $(1)))
programs    := $(patsubst src/%.c,%,$(wildcard src/*.c))
core        := $(OUT)/libcore.a
client      := $(OUT)/libpreempt.a $(OUT)/libpreempt.so.0
unit_tests  := $(patsubst tests/unit/%.c,$(OUT)/unit/%,$(wildcard tests/unit/*.c))
# Programs that tests and examples need.
extra       := $(patsubst %.c,$(OUT)/%,$(wildcard tests/sim/*_sim.c tests/history/store_history.c tests/bench/*.c \
                 tests/support/*.c tests/support/clients/*.c tests/support/trainers/*.c examples/*.c))

# The tests that inject faults: libraries that are preloaded into our programs.
faults      := $(addprefix $(OUT)/tests/crash/,calls.so without.so)

# The fuzz targets, by their names.
fuzz        := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))

.PHONY: all everything needs deps demo check check-all bench soak fuzz fuzz-targets install uninstall dist deb static clean \
        format changed
all: $(addprefix $(BIN)/,$(programs)) $(client)
everything: all $(unit_tests) $(extra) $(faults) $(if $(CHECKS),fuzz-targets)

# Checks what a build needs, and names the command that installs what is missing.
needs:
	@{ $(CC) --version && $(PKG_CONFIG) --exists --print-errors --short-errors $(LIBRARIES) $(HEADERS); } \
	  >/dev/null || { tests/support/packages --dry-run build; exit 1; }

# Installs what a build and make deb need, as root or with sudo.
deps:
	@tests/support/packages build deb

# Objects that were built with other flags are built again, and programs that were linked with other libraries are
# linked again. WERROR is not among these flags: objects are the same with it.
flags     := $(strip $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS))
libraries := $(OUT)/libraries/$(BIN)
$(OUT)/flags: contents := $(flags)
$(libraries): contents := $(LIBS)
ifneq ($(file <$(OUT)/flags),$(flags))
$(OUT)/flags: changed
endif
ifneq ($(file <$(libraries)),$(LIBS))
$(libraries): changed
endif
$(OUT)/flags $(libraries):
	@mkdir -p $(@D)
	@printf '%s\n' '$(contents)' >$@

define compile
@mkdir -p $(@D)
$(say) CC $@
$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(if $(WERROR),-Werror) -MMD -MP
endef

$(OUT)/%.o: %.c $(OUT)/flags | needs
	$(compile) -c -o $@ $<
$(OUT)/tests/%.o: ALL_CFLAGS += -Itests
# It includes <preempt.h>, as a user's program does.
$(OUT)/examples/loop.o: ALL_CPPFLAGS += -Ilib/client

# The public client is position independent and exports only what preempt.h declares.
$(OUT)/lib/client/%.o: lib/client/%.c $(OUT)/flags | needs
	$(compile) -fPIC -fvisibility=hidden -c -o $@ $<

# A library is also made again when a file was added to its directories or removed from them.
%.a:
	@rm -f $@
	$(say) AR $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)
$(core): $(filter-out $(OUT)/lib/client/% lib/client/%, \
  $(call objects,lib/*/*.c lib/*/*/*.c) $(wildcard lib/*/ lib/*/*/))
$(OUT)/libpreempt.a: $(call objects,lib/client/*.c) lib/client/
$(OUT)/libpreempt.so.0: $(call objects,lib/client/*.c) lib/client/
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,$(@F) -o $@ $(filter %.o,$^)
	@ln -sf $(@F) $(@:.0=)

# The tables of a queue, as text for C.
$(OUT)/lib/queue/schema.inc: lib/queue/schema.sql
	@mkdir -p $(@D)
	@sed 's/.*/"&\\n"/' $< >$@
$(OUT)/lib/queue/sql.o: $(OUT)/lib/queue/schema.inc
$(OUT)/lib/queue/sql.o: ALL_CPPFLAGS += -I$(OUT)/lib

define link
@mkdir -p $(@D)
$(say) LD $@
$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) -Wl,--as-needed $(LIBS)
endef

$(BIN)/%: $(OUT)/src/%.o $(core) $(OUT)/libpreempt.a $(if $(filter all,$(LINK)),$(OUT)/packaging/static.o) $(libraries)
	$(link)
$(foreach program,$(programs),$(eval $(BIN)/$(program): $(call objects,src/$(program)/*.c)))
$(OUT)/unit/%: $(OUT)/tests/unit/%.o $(core) $(OUT)/libpreempt.a $(libraries)
	$(link)
$(extra): $(OUT)/%: $(OUT)/%.o $(core) $(OUT)/libpreempt.a $(libraries)
	$(link)
# Some programs of $(extra) have several files.
simulation := $(filter-out %_sim.o,$(call objects,tests/sim/*.c))
$(OUT)/tests/sim/agreement_sim: $(simulation) $(call objects,tests/sim/group/*.c)
$(OUT)/tests/sim/queue_sim: $(simulation) $(call objects,tests/sim/queue/*.c)
$(OUT)/tests/bench/crowd: $(OUT)/tests/sim/idle.o $(OUT)/tests/sim/group/standins.o
$(OUT)/tests/history/store_history: $(call objects,tests/history/*.c)
# A store in memory, and a shim that delays and loses requests: only these test programs have them.
$(addprefix $(OUT)/,unit/store $(addprefix tests/sim/,agreement_sim queue_sim)): \
  $(call objects,tests/support/backends/*.c)
$(OUT)/examples/train: $(call objects,examples/training/*.c)

$(OUT)/tests/crash/calls.o $(OUT)/tests/crash/without.o: ALL_CFLAGS += -fPIC
$(OUT)/tests/crash/%.so: $(OUT)/tests/crash/%.o
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $<

# libFuzzer has the main function, or support/replay.c.
fuzz-targets: $(addprefix $(OUT)/tests/fuzz/,$(fuzz))
$(OUT)/tests/fuzz/%.o: ALL_CPPFLAGS += -Itests/fuzz
ifdef FUZZ
$(OUT)/tests/fuzz/%: private ALL_LDFLAGS += -fsanitize=fuzzer
endif
$(OUT)/tests/fuzz/%: $(OUT)/tests/fuzz/%.o $(call objects,$(addprefix tests/fuzz/support/,fuzz.c $(if $(FUZZ),,replay.c))) \
  $(core) $(OUT)/libpreempt.a
	$(link)

# Runs each fuzz target for about SECONDS.
fuzz:
	@tests/fuzz/run --seconds $(or $(SECONDS),60)

# A second make, because this one asked pkg-config before the packages were installed.
demo:
	@tests/support/packages build
	@$(MAKE) --no-print-directory all $(OUT)/examples/train
	@examples/demo.sh

# tests/run installs what a build and the tests need. On two processors, check takes 4 minutes, check-all 15.
check:
	@tests/run check
check-all:
	@tests/run all

bench: all $(filter $(OUT)/tests/bench/% $(OUT)/tests/support/% $(OUT)/tests/support/trainers/%,$(extra))
	@tests/bench/bench.sh $(SECTION)

# What takes too long for check-all.
soak:
	@LIVES=$(LIVES) tests/run soak

install: all
install uninstall: export DESTDIR := $(DESTDIR)
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export LIBDIR := $(LIBDIR)
install uninstall:
	@VERSION=$(VERSION) BIN=$(BIN) OUT=$(OUT) packaging/install $(if $(filter uninstall,$@),--remove)

# An archive is the same wherever it is made: it is sorted, without owners, and all its files have the time of the
# commit; outside git, the time of VERSION.
name    := preempt-tools-$(VERSION)
machine  = $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
git      = $(if $(wildcard .git),git -c safe.directory='*')
epoch    = $(or $(SOURCE_DATE_EPOCH),$(shell $(if $(git),$(git) log -1 --format=%ct,stat -c %Y VERSION)))
archive  = tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$(epoch) --format=gnu -c
ours     = $(if $(git),$(git) ls-files -z,find . -path ./build -prune -o -path './bin/[!.]*' -prune -o \
             -name __pycache__ -prune -o ! -type d -printf '%P\0' | LC_ALL=C sort -z)

dist:
	@mkdir -p build/dist
	@$(ours) >build/dist/files
	@$(archive) --null -T build/dist/files --transform='s|^|$(name)/|S' -f build/dist/$(name).tar
	@gzip -9nf build/dist/$(name).tar
	@echo build/dist/$(name).tar.gz

# packaging/debian describes the Debian packages; their changelog and copyright are made here.
deb:
	@tests/support/packages --dry-run build deb
	@rm -rf build/deb/package build/deb/*.deb
	@mkdir -p build/deb/package
	@cp -r packaging/debian build/deb/package
	@cp LICENSE build/deb/package/debian/copyright
	@printf '%s\n\n  * See NEWS.md.\n\n -- %s  %s\n' 'preempt-tools ($(VERSION)-1) unstable; urgency=medium' \
	  "$$(sed -n 's/^Maintainer: //p' packaging/debian/control)" "$$(date -uRd @$(epoch))" >build/deb/package/debian/changelog
	cd build/deb/package && DEB_BUILD_OPTIONS="noautodbgsym $$DEB_BUILD_OPTIONS" dpkg-buildpackage -b -uc -us -J
	@ls build/deb/*.deb

# For users who are not root, and machines with an older C library. Adds the licences of the linked libraries.
static: unpacked = build/static/$(name)
static:
	@$(MAKE) --no-print-directory all LINK=all BIN=build/static/bin
	@rm -rf $(unpacked)
	@$(MAKE) --no-print-directory install LINK=all BIN=build/static/bin PREFIX=/$(name) LIBDIR=/$(name)/lib DESTDIR=build/static
	@strip $(unpacked)/bin/*
	@strip --strip-debug $(unpacked)/lib/libpreempt.a $(unpacked)/lib/libpreempt.so.0
	@sed -i 's|^prefix=.*|prefix=$${pcfiledir}/../..|' $(unpacked)/lib/pkgconfig/preempt.pc
	@for file in /usr/share/doc/lib*-dev/copyright; do \
	  case $$file in *argtable2* | *json-c* | *sqlite3* | *xxhash* | */libc6-*) \
	    install -D -m 644 $$file $(unpacked)/share/doc/preempt-tools/licenses/$$(basename $${file%/*}) ;; esac; done
	@$(archive) -C build/static $(name) | gzip -9n >build/static/$(name)-$(machine)-static.tar.gz
	@echo build/static/$(name)-$(machine)-static.tar.gz

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build bin/* lib/client/__pycache__

.SECONDARY:
-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
