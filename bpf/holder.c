// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Keeps a congestion controller registered in the kernel while it runs.
 *
 *   holder check OBJECT
 *       loads the controller, so that the kernel verifies it, and registers nothing.
 *   holder hold OBJECT NAME PIDFD [KEY=NUMBER ...]
 *       registers it as NAME, or if that is taken as NAME2, NAME3 and so on up to NAME99, and exits when its
 *       standard input closes or the process of PIDFD ends.
 *
 * It prints one line of JSON: {"name": ..., "link": ..., "map": ...} with the kernel's numbers of both, or
 * {"error": ...}, and then exits with status 1. The verifier's log goes to standard error.
 *
 * The registration is a BPF link with one file descriptor, in this process. Nothing is pinned, so the kernel
 * removes the controller however this process ends. It watches its parent through a pidfd instead of
 * PR_SET_PDEATHSIG: that signal comes when the starting thread ends, which may be long before its process does.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

/* TCP_CA_NAME_MAX of the kernel, including the terminating zero. */
#define NAME_SIZE 16
#define MOST_NAMES 99
/* Linux 6.4 and later: the name may be missing from the headers. */
#define LINK_FLAG (1U << 13)
#define LINK_TYPE_STRUCT_OPS 44

static void fail(const char *format, ...)
{
	va_list arguments;

	printf("{\"error\": \"");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\"}\n");
	exit(1);
}

/* ENOTSUPP of the kernel has no text in the C library. */
static const char *reason(int error)
{
	return error == 524 ? "not supported" : strerror(error);
}

static int complain(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, arguments);
}

struct object_file {
	char *bytes;
	size_t size;
	char *name; /* the controller's name within the bytes */
};

/* The name with all its zeros occurs once in the object: in the registered structure. */
static struct object_file read_object(const char *path, const char *name)
{
	struct object_file file = {0};
	char padded[NAME_SIZE] = {0};
	FILE *stream = fopen(path, "rb");
	long size;

	if (!stream || fseek(stream, 0, SEEK_END) || (size = ftell(stream)) < NAME_SIZE)
		fail("cannot read the object file: %s", strerror(errno));
	rewind(stream);
	file.size = size;
	file.bytes = malloc(file.size);
	if (!file.bytes || fread(file.bytes, 1, file.size, stream) != file.size)
		fail("cannot read the object file: %s", strerror(errno));
	fclose(stream);
	if (!name)
		return file;
	if (strlen(name) > NAME_SIZE - 3)
		fail("a name of at most %d characters is needed", NAME_SIZE - 3);
	strcpy(padded, name);
	file.name = memmem(file.bytes, file.size, padded, NAME_SIZE);
	if (!file.name)
		fail("the object file registers no %s", name);
	return file;
}

/* Sets a constant of the program before it is loaded. */
static void set_constant(struct bpf_object *object, const char *key, __u32 value)
{
	const struct btf *btf = bpf_object__btf(object);
	struct bpf_map *constants = bpf_object__find_map_by_name(object, ".rodata");
	int section = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *type = section < 0 ? NULL : btf__type_by_id(btf, section);
	size_t size = 0;
	char *bytes = constants ? (char *)bpf_map__initial_value(constants, &size) : NULL;

	for (int i = 0; bytes && type && i < btf_vlen(type); i++) {
		const struct btf_var_secinfo *variable = &btf_var_secinfos(type)[i];
		const struct btf_type *named = btf__type_by_id(btf, variable->type);

		if (strcmp(btf__name_by_offset(btf, named->name_off), key) == 0 && variable->size == sizeof(value) &&
		    variable->offset + sizeof(value) <= size) {
			memcpy(bytes + variable->offset, &value, sizeof(value));
			return;
		}
	}
	fail("this controller has no parameter %s", key);
}

static void set_constants(struct bpf_object *object, char **settings)
{
	for (; *settings; settings++) {
		char key[NAME_SIZE];
		unsigned int value;
		int end = 0;

		if (sscanf(*settings, "%15[a-z_]=%u%n", key, &value, &end) != 2 || (*settings)[end])
			fail("KEY=NUMBER is needed");
		set_constant(object, key, value);
	}
}

/* The loaded object, and its map for the controller. */
struct loaded {
	struct bpf_object *object;
	struct bpf_map *controller;
};

/* Loads the object; exits on failure. */
static struct loaded load(const struct object_file *file, char **settings)
{
	struct bpf_object *object = bpf_object__open_mem(file->bytes, file->size, NULL);
	struct bpf_map *map, *controller = NULL;
	int error;

	if (!object)
		fail("libbpf cannot open the object file: %s", strerror(errno));
	bpf_object__for_each_map(map, object)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			controller = map;
	if (!controller)
		fail("the object file holds no controller");
	set_constants(object, settings);
	error = bpf_map__set_map_flags(controller, bpf_map__map_flags(controller) | LINK_FLAG);
	if (!error)
		error = bpf_object__load(object);
	if (error)
		fail("the kernel does not take the program: %s", reason(-error));
	return (struct loaded){object, controller};
}

/* Registers the controller; returns the descriptor of the link, or a negative error. */
static int attach(struct bpf_map *controller)
{
	struct bpf_link *link = bpf_map__attach_struct_ops(controller);
	union bpf_attr attributes;
	int descriptor;

	if (!link)
		return -errno;
	if (bpf_link__fd(link) != bpf_map__fd(controller))
		return bpf_link__fd(link);
	/* libbpf before 1.2 fills in the map and has no links. */
	memset(&attributes, 0, sizeof(attributes));
	attributes.link_create.prog_fd = bpf_map__fd(controller);
	attributes.link_create.attach_type = LINK_TYPE_STRUCT_OPS;
	descriptor = syscall(__NR_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
	return descriptor < 0 ? -errno : descriptor;
}

static void report(const char *name, int link, int map)
{
	struct bpf_link_info link_info = {0};
	struct bpf_map_info map_info = {0};
	__u32 link_size = sizeof(link_info), map_size = sizeof(map_info);

	if (bpf_obj_get_info_by_fd(link, &link_info, &link_size) || bpf_obj_get_info_by_fd(map, &map_info, &map_size))
		fail("cannot read the registration: %s", strerror(errno));
	printf("{\"name\": \"%s\", \"link\": %u, \"map\": %u}\n", name, link_info.id, map_info.id);
	fflush(stdout);
}

static void wait_for_end(int parent)
{
	struct pollfd watched[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = parent, .events = POLLIN}};
	char ignored[64];

	for (;;) {
		if (poll(watched, 2, -1) < 0 && errno != EINTR)
			return;
		if (watched[1].revents)
			return;
		if (watched[0].revents && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0)
			return;
	}
}

static int hold(const char *path, const char *base, int parent, char **settings)
{
	struct object_file file = read_object(path, base);

	for (int number = 1; number <= MOST_NAMES; number++) {
		struct loaded loaded;
		int link;

		if (number > 1)
			snprintf(file.name, NAME_SIZE, "%s%d", base, number);
		loaded = load(&file, settings);
		link = attach(loaded.controller);
		if (link >= 0) {
			report(file.name, link, bpf_map__fd(loaded.controller));
			wait_for_end(parent);
			return 0;
		}
		if (link != -EEXIST)
			fail("the kernel does not register %s: %s", file.name, reason(-link));
		bpf_object__close(loaded.object);
	}
	fail("all names from %s to %s%d are taken", base, base, MOST_NAMES);
	return 1;
}

int main(int count, char **arguments)
{
	libbpf_set_print(complain);
	if (count == 3 && strcmp(arguments[1], "check") == 0) {
		struct object_file file = read_object(arguments[2], NULL);

		load(&file, arguments + 3);
		printf("{}\n");
		return 0;
	}
	if (count >= 5 && strcmp(arguments[1], "hold") == 0)
		return hold(arguments[2], arguments[3], atoi(arguments[4]), arguments + 5);
	fprintf(stderr, "usage: holder check OBJECT | holder hold OBJECT NAME PIDFD [KEY=NUMBER ...]\n");
	return 2;
}
