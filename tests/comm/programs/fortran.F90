! The same calls through mpif.h, use mpi (-DUSE_MPI) and use mpi_f08 (-DUSE_F08).
#ifdef USE_F08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define STATUS type(MPI_Status)
#define STATUSES(n) type(MPI_Status), dimension(n)
#define DATATYPE type(MPI_Datatype)
#else
#define COMM integer
#define REQUEST integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define STATUSES(n) integer, dimension(MPI_STATUS_SIZE, n)
#define DATATYPE integer
#endif
#ifdef USE_F08
#define USES use mpi_f08
#define INCLUDES
#elif defined(USE_MPI)
#define USES use mpi
#define INCLUDES
#else
#define USES
#define INCLUDES include 'mpif.h'
#endif

subroutine exchange(rank, size)
    USES
    implicit none
    INCLUDES
    integer :: rank, size, left, right, ierr, i, index, count, indices(2)
    double precision :: a(100), b(1000)
    REQUEST :: r(2)
    STATUSES(2) :: s
    STATUS :: one
    logical :: flag
    right = mod(rank + 1, size)
    left = mod(rank + size - 1, size)
    a = 1
    do i = 1, 3
        call MPI_Irecv(b, 1000, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, r(1), ierr)
        call MPI_Isend(a, 10 * i, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, r(2), ierr)
        if (i == 1) then
            call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, ierr)
        else if (i == 2) then
            call MPI_Waitall(2, r, s, ierr)
        else
            call MPI_Waitany(2, r, index, MPI_STATUS_IGNORE, ierr)
            call MPI_Waitany(2, r, index, one, ierr)
        end if
    end do
    call MPI_Sendrecv(a, 7, MPI_REAL, right, 2, b, 100, MPI_REAL, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    if (mod(rank, 2) == 0) then
        call MPI_Send(a, 5, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierr)
        call MPI_Recv(b, 50, MPI_INTEGER, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    else
        call MPI_Recv(b, 50, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, one, ierr)
        call MPI_Send(a, 5, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierr)
    end if
    call MPI_Recv_init(b, 1000, MPI_DOUBLE_PRECISION, left, 4, MPI_COMM_WORLD, r(1), ierr)
    call MPI_Send_init(a, 11, MPI_DOUBLE_PRECISION, right, 4, MPI_COMM_WORLD, r(2), ierr)
    do i = 1, 4
        call MPI_Startall(2, r, ierr)
        count = 0
        do while (count < 2)
            call MPI_Waitsome(2, r, index, indices, MPI_STATUSES_IGNORE, ierr)
            count = count + index
        end do
    end do
    call MPI_Request_free(r(1), ierr)
    call MPI_Request_free(r(2), ierr)
    call MPI_Irecv(b, 1000, MPI_DOUBLE_PRECISION, left, 5, MPI_COMM_WORLD, r(1), ierr)
    call MPI_Isend(a, 12, MPI_DOUBLE_PRECISION, right, 5, MPI_COMM_WORLD, r(2), ierr)
    flag = .false.
    do while (.not. flag)
        call MPI_Test(r(1), flag, MPI_STATUS_IGNORE, ierr)
    end do
    call MPI_Wait(r(2), MPI_STATUS_IGNORE, ierr)
    call MPI_Send(a, 5, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD, ierr)
end subroutine

subroutine together(rank, size)
    USES
    implicit none
    INCLUDES
    integer :: rank, size, ierr, counts(8), places(8), i
    double precision :: a(64), b(64)
    COMM :: half
    DATATYPE :: types(8)
    a = 1
    b = 1
    call MPI_Bcast(a, 6, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
    call MPI_Allreduce(a, b, 8, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Allreduce(MPI_IN_PLACE, b, 8, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Alltoall(MPI_IN_PLACE, 999, MPI_INTEGER, b, 3, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
    do i = 1, size
        counts(i) = i
        places(i) = 64 * (i - 1)
        types(i) = MPI_DOUBLE_PRECISION
        if (mod(rank + i, 2) == 1) types(i) = MPI_REAL
    end do
    call MPI_Alltoallw(a, (/ (1, i = 1, size) /), places, types, b, (/ (1, i = 1, size) /), places, types, MPI_COMM_WORLD, ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
    call MPI_Allreduce(a, b, 1, MPI_DOUBLE_PRECISION, MPI_SUM, half, ierr)
    call MPI_Comm_free(half, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
end subroutine

program main
    USES
    implicit none
    INCLUDES
    integer :: rank, size, ierr, length
    character(len=MPI_MAX_PROCESSOR_NAME) :: name
#ifdef USE_F08
    call MPI_Init()
#else
    call MPI_Init(ierr)
#endif
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    name = ' '
    call MPI_Get_processor_name(name, length, ierr)
    if (length < 1 .or. name == ' ') call MPI_Abort(MPI_COMM_WORLD, 9, ierr)
    call exchange(rank, size)
    call together(rank, size)
#ifdef USE_F08
    call MPI_Finalize()
#else
    call MPI_Finalize(ierr)
#endif
end program
