/* A libnvidia-ml.so.1 of three invented cards, for tests:
 *
 *   0  NVIDIA H200: processes, MPS clients, GPM, XID and ECC events
 *   1  Tesla T4: idle, no GPM, no MIG, XID events only
 *   2  NVIDIA H100 in MIG mode, with MIG devices 0 and 2 (1 was taken away)
 *
 * The test steers it by files in the directory $BERTH_FAKE_NVML, which it replaces
 * at a stroke (rename):
 *
 *   calls            each call, one a line; the library writes it
 *   fault.<function> "hang": do not return before the file is gone; a number: return it
 *   lost.<card>      the card fell off the bus
 *   deaf.<card>      the card tells of no errors
 *   none             the machine has no card
 *   event            "card type data": one event
 *
 * It ends the process when it is used wrongly: a call before nvmlInit, after one
 * that failed or after nvmlShutdown, a sample used after it was freed.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvml.h"

#define MIB (1024ULL * 1024ULL)
#define NOT_AVAILABLE 0xFFFFFFFFFFFFFFFFULL
#define NO_INSTANCE 0xFFFFFFFFU

struct process {
	unsigned pid;
	unsigned long long bytes;
};

struct nvmlDevice_st {
	int card; /* index of the card that it is, or is part of */
	int mig;  /* 1 = a MIG device */
	const char *uuid, *name;
	int major, minor;
	unsigned long long total, reserved, free; /* MiB */
	int gpm, ecc, mig_mode;                   /* mig_mode: -1 = the card is too old */
	struct process compute[8], mps[8];
	long samples;
};

static struct nvmlDevice_st devices[] = {
	{.card = 0, .uuid = "GPU-00000000-0000-0000-0000-000000000000", .name = "NVIDIA H200", .major = 9, .minor = 0,
	 .total = 143771, .reserved = 600, .free = 139171, .gpm = 1, .ecc = 1, .mig_mode = 0,
	 .compute = {{4001, 1024 * MIB}, {4004, 66 * MIB}, {4002, NOT_AVAILABLE}, {4003, 880 * MIB}, {4005, NOT_AVAILABLE}, {4006, 878 * MIB}},
	 .mps = {{4003, NOT_AVAILABLE}, {4002, 512 * MIB}, {4006, 878 * MIB}, {4008, 100 * MIB}}},
	{.card = 1, .uuid = "GPU-11111111-1111-1111-1111-111111111111", .name = "Tesla T4", .major = 7, .minor = 5,
	 .total = 15360, .reserved = 460, .free = 14900, .mig_mode = -1},
	{.card = 2, .uuid = "GPU-22222222-2222-2222-2222-222222222222", .name = "NVIDIA H100 80GB HBM3", .major = 9, .minor = 0,
	 .total = 81559, .reserved = 551, .free = 79008, .gpm = 1, .ecc = 1, .mig_mode = 1},
	{.card = 2, .mig = 1, .uuid = "MIG-33333333-3333-3333-3333-333333333333", .name = "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
	 .major = 9, .minor = 0, .total = 40448, .reserved = 11, .free = 38437, .gpm = 1,
	 .mig_mode = -1,
	 .compute = {{4007, 2000 * MIB}}},
	{.card = 2, .mig = 1, .uuid = "MIG-44444444-4444-4444-4444-444444444444", .name = "NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb",
	 .major = 9, .minor = 0, .total = 20096, .reserved = 6, .free = 20090, .gpm = 0,
	 .mig_mode = -1},
};
enum { CARDS = 3, ALL = 5 };

/* --- steering --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int started, failed; /* nvmlInit: how often it succeeded; whether it failed last */

static void die(const char *why, const char *what)
{
	fprintf(stderr, "fake NVML: %s: %s\n", why, what);
	_exit(70);
}

static char *path(char *buffer, size_t size, const char *name)
{
	const char *dir = getenv("BERTH_FAKE_NVML");

	if (!dir)
		die("BERTH_FAKE_NVML is not set", name);
	snprintf(buffer, size, "%s/%s", dir, name);
	return buffer;
}

static int exists(const char *name)
{
	char file[512];

	return access(path(file, sizeof file, name), F_OK) == 0;
}

static int slurp(const char *name, char *text, int size)
{
	char file[512];
	FILE *f = fopen(path(file, sizeof file, name), "r");
	int n;

	if (!f)
		return 0;
	n = (int)fread(text, 1, size - 1, f);
	text[n] = 0;
	fclose(f);
	return 1;
}

static void note(const char *line)
{
	char file[512], text[256];
	int fd = open(path(file, sizeof file, "calls"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	int n = snprintf(text, sizeof text, "%s\n", line);

	if (fd < 0 || write(fd, text, n) != n)
		die("cannot write the calls", line);
	close(fd);
}

static void pause_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static nvmlReturn_t fault(const char *function)
{
	char name[128], text[32];

	snprintf(name, sizeof name, "fault.%s", function);
	if (!slurp(name, text, sizeof text))
		return NVML_SUCCESS;
	if (strncmp(text, "hang", 4) == 0) {
		while (exists(name))
			pause_ms(2);
		return NVML_SUCCESS;
	}
	return (nvmlReturn_t)atoi(text);
}

static nvmlReturn_t enter(const char *function)
{
	note(function);
	pthread_mutex_lock(&lock);
	if (started == 0)
		die(failed ? "called after nvmlInit failed" : "called while not started", function);
	pthread_mutex_unlock(&lock);
	return fault(function);
}

static int steered(const char *how, int card)
{
	char name[32];

	snprintf(name, sizeof name, "%s.%d", how, card);
	return exists(name);
}

static int lost(int card) { return steered("lost", card); }

#define ENTER                                          \
	do {                                           \
		nvmlReturn_t code = enter(__func__);   \
		if (code != NVML_SUCCESS)              \
			return code;                   \
	} while (0)

#define ENTER_CARD(device)                                 \
	do {                                               \
		ENTER;                                     \
		if (!(device).handle)                      \
			return NVML_ERROR_INVALID_ARGUMENT; \
		if (lost((device).handle->card))           \
			return NVML_ERROR_GPU_IS_LOST;     \
	} while (0)

/* --- the library --- */

static nvmlReturn_t init(const char *function)
{
	nvmlReturn_t code;

	note(function);
	code = fault(function);
	pthread_mutex_lock(&lock);
	failed = code != NVML_SUCCESS;
	started += !failed;
	pthread_mutex_unlock(&lock);
	return code;
}

nvmlReturn_t nvmlInit_v2(void) { return init(__func__); }
nvmlReturn_t nvmlInit(void) { return init(__func__); }

static int alive; /* samples that were allocated and not freed */
static int sets;  /* event sets */

nvmlReturn_t nvmlShutdown(void)
{
	char line[64];

	ENTER;
	pthread_mutex_lock(&lock);
	started--;
	snprintf(line, sizeof line, "left %d samples %d sets", alive, sets);
	pthread_mutex_unlock(&lock);
	note(line);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	ENTER;
	snprintf(version, length, "580.159.04");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	ENTER;
	*version = 13010;
	return NVML_SUCCESS;
}

static nvmlReturn_t count(unsigned *n)
{
	*n = exists("none") ? 0 : CARDS;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { ENTER; return count(n); }
nvmlReturn_t nvmlDeviceGetCount(unsigned *n) { ENTER; return count(n); }

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *device)
{
	if (index >= CARDS)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (lost(index))
		return NVML_ERROR_GPU_IS_LOST;
	device->handle = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) { ENTER; return by_index(index, device); }
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) { ENTER; return by_index(index, device); }

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	ENTER;
	for (int i = 0; i < ALL; i++) {
		if (strcmp(devices[i].uuid, uuid))
			continue;
		if (lost(devices[i].card))
			return NVML_ERROR_GPU_IS_LOST;
		device->handle = &devices[i];
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	ENTER_CARD(device);
	snprintf(uuid, length, "%s", device.handle->uuid);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	ENTER_CARD(device);
	snprintf(name, length, "%s", device.handle->name);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	ENTER_CARD(device);
	*major = device.handle->major;
	*minor = device.handle->minor;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	struct nvmlDevice_st *d = device.handle;

	ENTER_CARD(device);
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memory->total = d->total * MIB;
	memory->reserved = d->reserved * MIB;
	memory->free = d->free * MIB;
	memory->used = (d->total - d->reserved - d->free) * MIB;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	struct nvmlDevice_st *d = device.handle;

	ENTER_CARD(device);
	memory->total = d->total * MIB;
	memory->free = d->free * MIB;
	memory->used = (d->total - d->free) * MIB;
	return NVML_SUCCESS;
}

/* The newest version of a list of processes, and the first, whose rows are shorter. */
static nvmlReturn_t list(struct process *from, unsigned *room, nvmlProcessInfo_t *newest, nvmlProcessInfo_v2_t *second, nvmlProcessInfo_v1_t *first)
{
	unsigned n = 0;

	while (n < 8 && from[n].pid)
		n++;
	if (n > *room) {
		*room = n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned i = 0; i < n; i++) {
		if (newest)
			newest[i] = (nvmlProcessInfo_t){from[i].pid, from[i].bytes, NO_INSTANCE, NO_INSTANCE};
		else if (second)
			second[i] = (nvmlProcessInfo_v2_t){from[i].pid, from[i].bytes, NO_INSTANCE, NO_INSTANCE};
		else
			first[i] = (nvmlProcessInfo_v1_t){from[i].pid, from[i].bytes};
	}
	*room = n;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *infos)
{
	ENTER_CARD(device);
	return list(device.handle->compute, n, infos, NULL, NULL);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v2_t *infos)
{
	ENTER_CARD(device);
	return list(device.handle->compute, n, NULL, infos, NULL);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *infos)
{
	ENTER_CARD(device);
	return list(device.handle->compute, n, NULL, NULL, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *infos)
{
	ENTER_CARD(device);
	return list(device.handle->mps, n, infos, NULL, NULL);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v2_t *infos)
{
	ENTER_CARD(device);
	return list(device.handle->mps, n, NULL, infos, NULL);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *infos)
{
	ENTER_CARD(device);
	return list(device.handle->mps, n, NULL, NULL, infos);
}

/* --- MIG --- */

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
	ENTER_CARD(device);
	if (device.handle->mig_mode < 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = *pending = device.handle->mig_mode;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *n)
{
	ENTER_CARD(device);
	*n = 7;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig)
{
	ENTER_CARD(device);
	if (device.handle->mig_mode != 1 || (index != 0 && index != 2))
		return NVML_ERROR_NOT_FOUND;
	mig->handle = &devices[CARDS + index / 2];
	return NVML_SUCCESS;
}

/* --- GPM --- */

struct nvmlGpmSample_st {
	int freed, card;
	long number; /* of the card's samples, from 1 */
	struct timespec at;
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
	ENTER_CARD(device);
	if (support->version != NVML_GPM_SUPPORT_VERSION || device.handle->mig)
		return NVML_ERROR_INVALID_ARGUMENT;
	support->isSupportedDevice = device.handle->gpm;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
	ENTER;
	sample->handle = calloc(1, sizeof *sample->handle);
	alive++;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	ENTER;
	if (!sample.handle || sample.handle->freed)
		die("freed twice", __func__);
	sample.handle->freed = 1; /* and kept, to notice its use */
	alive--;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
	ENTER_CARD(device);
	if (!sample.handle || sample.handle->freed)
		die("a freed sample", __func__);
	if (!device.handle->gpm)
		return NVML_ERROR_NOT_SUPPORTED;
	sample.handle->card = device.handle - devices;
	sample.handle->number = ++device.handle->samples;
	clock_gettime(CLOCK_MONOTONIC, &sample.handle->at);
	return NVML_SUCCESS;
}

/* SM activity is ten times the number of the newer sample, in percent. A MIG device
 * has no tensor activity, and its bandwidth is no number. */
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
	struct nvmlGpmSample_st *a = get->sample1.handle, *b = get->sample2.handle;
	double ms;

	ENTER;
	if (get->version != NVML_GPM_METRICS_GET_VERSION || !a || !b || a->card != b->card)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (a->freed || b->freed)
		die("a freed sample", __func__);
	ms = (b->at.tv_sec - a->at.tv_sec) * 1e3 + (b->at.tv_nsec - a->at.tv_nsec) / 1e6;
	if (ms <= 100)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < get->numMetrics; i++) {
		nvmlGpmMetric_t *m = &get->metrics[i];

		m->nvmlReturn = NVML_SUCCESS;
		m->value = 0;
		switch (m->metricId) {
		case NVML_GPM_METRIC_SM_UTIL:
			m->value = 10.0 * b->number;
			break;
		case NVML_GPM_METRIC_ANY_TENSOR_UTIL:
			m->value = 5;
			m->nvmlReturn = devices[b->card].mig ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
			break;
		case NVML_GPM_METRIC_DRAM_BW_UTIL:
			m->value = devices[b->card].mig ? NAN : 47.5;
			break;
		default:
			m->nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
		}
	}
	return NVML_SUCCESS;
}

/* --- events --- */

struct nvmlEventSet_st {
	int freed;
	unsigned long long types[CARDS];
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	ENTER;
	set->handle = calloc(1, sizeof *set->handle);
	sets++;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	ENTER;
	if (set.handle->freed)
		die("freed twice", __func__);
	set.handle->freed = 1;
	sets--;
	return NVML_SUCCESS;
}

static unsigned long long told(struct nvmlDevice_st *d)
{
	/* And clock changes, which every card tells and Berth does not want. */
	if (steered("deaf", d->card))
		return nvmlEventTypeClock;
	return nvmlEventTypeXidCriticalError | nvmlEventTypeClock |
	       (d->ecc ? nvmlEventTypeDoubleBitEccError | nvmlEventTypeSingleBitEccError : 0);
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
	ENTER_CARD(device);
	*types = told(device.handle);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	ENTER_CARD(device);
	if (set.handle->freed)
		die("a freed set", __func__);
	if (device.handle->mig || types & ~told(device.handle))
		return NVML_ERROR_NOT_SUPPORTED;
	set.handle->types[device.handle->card] = types;
	return NVML_SUCCESS;
}

static nvmlReturn_t wait_event(nvmlEventSet_t set, nvmlEventData_t *data, unsigned ms)
{
	char text[128], from[512], to[512];
	int card;

	if (set.handle->freed)
		die("a freed set", "wait");
	for (unsigned waited = 0;; waited += 2) {
		if (slurp("event", text, sizeof text)) {
			rename(path(from, sizeof from, "event"), path(to, sizeof to, "event.taken"));
			memset(data, 0, sizeof *data);
			if (sscanf(text, "%d %llu %llu", &card, &data->eventType, &data->eventData) != 3)
				die("cannot read the event", text);
			if (card >= 0 && !(set.handle->types[card] & data->eventType))
				continue; /* nobody asked for it */
			if (card >= 0)
				data->device.handle = &devices[card];
			return NVML_SUCCESS;
		}
		if (waited >= ms)
			return NVML_ERROR_TIMEOUT;
		pause_ms(2);
	}
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned ms) { ENTER; return wait_event(set, data, ms); }
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned ms) { ENTER; return wait_event(set, data, ms); }
