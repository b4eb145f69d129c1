/*
 * The VM's first process: knows how to turn a bare kernel with the host's files as its read-only root into a
 * place where one command can run, and how to report what the command wrote and how it ended.
 *
 * It talks to vm-host.c over one virtio-serial port. The host sends a job (length, then NUL-ended words); the guest
 * sends frames: a type byte, a 32-bit length, the bytes. One stream means that the exit frame can't overtake output.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORDS 4096
#define MAX_KEEP 16
#define GRACE_MS 3000 /* for what the command left running, between SIGTERM and SIGKILL */

static int port = -1;

static void send_frame(char type, const void *buf, uint32_t len)
{
	char head[5] = { type };
	const char *parts[2] = { head, buf };
	size_t sizes[2] = { sizeof(head), len };

	memcpy(head + 1, &len, 4);
	for (int i = 0; i < 2; i++) {
		while (sizes[i]) {
			ssize_t n = write(port, parts[i], sizes[i]);
			if (n < 0 && errno != EINTR && errno != EAGAIN)
				return;
			if (n > 0) {
				parts[i] += n;
				sizes[i] -= n;
			}
		}
	}
}

/* The host stops the whole VM on an 'X' or 'F' frame, so there is nothing to do after one but wait. */
static void halt_here(void)
{
	for (;;)
		pause();
}

static void fail(const char *fmt, ...)
{
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (port >= 0)
		send_frame('F', msg, strlen(msg));
	else
		dprintf(2, "vm-init: %s\n", msg);
	halt_here();
}

static void mkdirs(const char *path)
{
	char p[4096];

	snprintf(p, sizeof(p), "%s", path);
	for (char *s = p + 1; *s; s++) {
		if (*s != '/')
			continue;
		*s = 0;
		mkdir(p, 0755);
		*s = '/';
	}
	mkdir(p, 0755);
}

/* The only virtio-serial port; its number and the moment it appears differ between kernels. */
static void open_port(void)
{
	glob_t g;

	for (int i = 0; i < 2000 && port < 0; i++) {
		if (glob("/dev/vport*p*", 0, NULL, &g) == 0)
			port = open(g.gl_pathv[0], O_RDWR | O_CLOEXEC);
		globfree(&g);
		if (port < 0)
			usleep(5000);
	}
	if (port < 0)
		fail("no virtio-serial port: %s", strerror(errno));
}

static void read_full(char *buf, size_t len)
{
	while (len) {
		ssize_t n = read(port, buf, len);
		if (n > 0) {
			buf += n;
			len -= n;
		} else {
			usleep(2000); /* 0: the host's side isn't open yet */
		}
	}
}

static const struct {
	const char *type, *dir, *opts;
} mounts[] = {
	{ "sysfs", "/sys", NULL },
	{ "devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666" },
	{ "tmpfs", "/dev/shm", "mode=1777" },
	{ "tmpfs", "/run", "mode=755" },
	{ "tmpfs", "/tmp", "mode=1777" },
	{ "tmpfs", "/var/tmp", "mode=1777" },
	{ "tmpfs", "/var/log", "mode=755" },
	{ "cgroup2", "/sys/fs/cgroup", NULL },
	{ "bpf", "/sys/fs/bpf", "mode=700" },
	{ "debugfs", "/sys/kernel/debug", NULL },
	{ "tracefs", "/sys/kernel/tracing", NULL },
};

static void mount_all(void)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i].dir, 0755); /* only where the parent is writable, as in /dev */
		if (mount(mounts[i].type, mounts[i].dir, mounts[i].type, 0, mounts[i].opts))
			dprintf(2, "vm-init: mount %s: %s\n", mounts[i].dir, strerror(errno));
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		dprintf(2, "vm-init: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		ioctl(fd, SIOCSIFFLAGS, &req);
		close(fd);
	}
}

/* A host folder that a tmpfs of ours would hide (a checkout in /tmp, say): opened before, bound back after. */
struct keep {
	const char *path;
	int fd;
};

static void keep_back(struct keep *k)
{
	char from[32];
	struct stat a, b;

	if (fstat(k->fd, &a) == 0 && stat(k->path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", k->fd);
	mkdirs(k->path);
	if (mount(from, k->path, NULL, MS_BIND, NULL))
		dprintf(2, "vm-init: keep %s: %s\n", k->path, strerror(errno));
}

static void bind_if_there(const char *kernel_dir, const char *sub, const char *to)
{
	char from[4096];

	snprintf(from, sizeof(from), "%s/%s", kernel_dir, sub);
	if (access(from, F_OK) == 0 && access(to, F_OK) == 0)
		mount(from, to, NULL, MS_BIND, NULL);
}

struct job {
	const char *cwd, *kernel_dir;
	char *env[MAX_WORDS];
	char *rw[MAX_KEEP]; /* TAG:PATH */
	struct keep keep[MAX_KEEP];
	int envs, rws, keeps;
	char **argv;
};

static void read_job(struct job *j)
{
	static char *argv[MAX_WORDS];
	uint32_t len;
	int args = 0, in_args = 0;

	read_full((char *)&len, 4);
	char *buf = calloc(1, len + 1);
	if (!buf)
		fail("no memory for a job of %u bytes", len);
	read_full(buf, len);
	for (char *w = buf; w < buf + len; w += strlen(w) + 1) {
		if (args >= MAX_WORDS - 1 || j->envs >= MAX_WORDS - 1)
			fail("more than %d words in the command", MAX_WORDS);
		if (in_args)
			argv[args++] = w;
		else if (!strcmp(w, "--"))
			in_args = 1;
		else if (!strncmp(w, "cwd=", 4))
			j->cwd = w + 4;
		else if (!strncmp(w, "kernel=", 7))
			j->kernel_dir = w + 7;
		else if (!strncmp(w, "env=", 4))
			j->env[j->envs++] = w + 4;
		else if (!strncmp(w, "rw=", 3) && j->rws < MAX_KEEP)
			j->rw[j->rws++] = w + 3;
		else if (!strncmp(w, "keep=", 5) && j->keeps < MAX_KEEP)
			j->keep[j->keeps++].path = w + 5;
		else
			fail("vm-host sent a word I don't know: %s", w);
	}
	j->argv = argv;
}

static void prepare(struct job *j)
{
	for (int i = 0; i < j->keeps; i++)
		j->keep[i].fd = open(j->keep[i].path, O_PATH | O_CLOEXEC);
	mount_all();
	for (int i = 0; i < j->keeps; i++)
		if (j->keep[i].fd >= 0)
			keep_back(&j->keep[i]);
	for (int i = 0; i < j->rws; i++) {
		char *dir = strchr(j->rw[i], ':');
		*dir++ = 0;
		mkdirs(dir);
		if (mount(j->rw[i], dir, "virtiofs", 0, NULL))
			fail("can't mount %s read-write: %s", dir, strerror(errno));
	}
	if (j->kernel_dir) {
		bind_if_there(j->kernel_dir, "lib/modules", "/lib/modules");
		bind_if_there(j->kernel_dir, "boot", "/boot");
	}
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +cpuset +memory +pids");
	loopback_up();
	sethostname("fulcrum-vm", 10);
}

static pid_t start(struct job *j, int out, int err)
{
	pid_t pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(out, 1);
	dup2(err, 2);
	if (chdir(j->cwd))
		dprintf(2, "vm-init: no folder %s in the VM: %s\n", j->cwd, strerror(errno));
	else
		execvpe(j->argv[0], j->argv, j->env);
	dprintf(2, "vm-init: can't run %s: %s\n", j->argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Passes one chunk on; closes the pipe's entry at its end. */
static void relay(struct pollfd *p, char type)
{
	static char buf[30000];
	ssize_t n = read(p->fd, buf, sizeof(buf));

	if (n > 0)
		send_frame(type, buf, n);
	else if (n == 0 || errno != EINTR)
		p->fd = -1;
}

/*
 * Until the command has ended; then all that it left running gets SIGTERM (a scheduler detaches by that) and, after
 * the grace, SIGKILL; then until both pipes are empty.
 */
static int supervise(pid_t pid, int out, int err, int sigfd)
{
	struct pollfd p[3] = { { out, POLLIN, 0 }, { err, POLLIN, 0 }, { sigfd, POLLIN, 0 } };
	int status = 0, ended = 0, killed = 0, childless = 0, st;
	struct signalfd_siginfo si;
	long deadline = 0;
	pid_t got;

	while (!ended || p[0].fd >= 0 || p[1].fd >= 0) {
		poll(p, 3, ended && !killed ? 20 : 1000);
		if (p[0].fd >= 0 && p[0].revents)
			relay(&p[0], 'O');
		if (p[1].fd >= 0 && p[1].revents)
			relay(&p[1], 'E');
		if (p[2].revents && read(sigfd, &si, sizeof(si)) < 0)
			continue;
		while ((got = waitpid(-1, &st, WNOHANG)) > 0)
			if (got == pid) {
				status = st;
				ended = 1;
				deadline = now_ms() + GRACE_MS;
				kill(-1, SIGTERM);
				kill(-1, SIGCONT);
			}
		childless = got < 0 && errno == ECHILD;
		if (ended && !killed && (childless || now_ms() > deadline)) {
			kill(-1, SIGKILL);
			killed = 1;
		}
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(void)
{
	static struct job j;
	int out[2], err[2];
	sigset_t chld;
	/* Output must get through even while a scheduler under test starves everything else. */
	struct sched_param fifo = { .sched_priority = 1 };

	mount("proc", "/proc", "proc", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, "mode=755"); /* over the host's /dev, which virtiofs shows */
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
	open_port();
	read_job(&j);
	prepare(&j);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	int sigfd = signalfd(-1, &chld, SFD_CLOEXEC);
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		fail("pipe: %s", strerror(errno));
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fifo);
	send_frame('R', "", 0);
	pid_t pid = start(&j, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	uint32_t code = supervise(pid, out[0], err[0], sigfd);
	sync(); /* what was written to a shared folder through a mapping */
	send_frame('X', &code, 4);
	halt_here();
}
